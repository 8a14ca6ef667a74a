#include "agent/load/result_text.h"

#include "agent/load/live.h"
#include "common/clock.h"
#include "common/parse.h"

#include <inttypes.h>

static struct live_text bytes_text(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct live_text out;
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < ARRAY_LEN(units); u++)
        bytes /= 1024;
    snprintf(out.text, sizeof out.text, "%.*f %s", u == 0 ? 0 : 1, bytes, units[u]);
    return out;
}

static struct live_text percentile(const struct hist *h, double percent)
{
    return live_time(hist_percentile(h, percent));
}

static void print_latency(const struct hist *h)
{
    static const double percents[] = {50, 75, 90, 95, 99, 99.9, 99.99};
    if (h->count == 0) {
        puts("  latency      none: no request succeeded");
        return;
    }
    printf("  latency      mean %s, sd %s, min %s, max %s\n", live_time((uint64_t)hist_mean(h)).text,
           live_time((uint64_t)hist_stddev(h)).text, live_time(h->min).text, live_time(h->max).text);
    for (size_t i = 0; i < ARRAY_LEN(percents); i++)
        printf("    %6g %%   %s\n", percents[i], percentile(h, percents[i]).text);
}

static void print_faults(const char *title, const struct fault_table *f)
{
    if (fault_total(f) == 0)
        return;
    printf("  %s\n", title);
    for (int p = 0; p < FAULT_PHASE_COUNT; p++) {
        for (int c = 0; c < FAULT_CAUSE_COUNT; c++) {
            const struct fault_cell *cell = &f->cells[p][c];
            if (cell->count != 0)
                printf("    %8" PRIu64 "  %s, %s: %s\n", cell->count, fault_phase_text((enum fault_phase)p),
                       fault_cause_text((enum fault_cause)c), cell->sample);
        }
    }
}

static void print_accounts(const struct tally *y)
{
    const struct accounts *w = &y->accounts[PHASE_WINDOW];
    const struct accounts *before = &y->accounts[PHASE_WARMUP];
    printf("  accounts     scheduled %" PRIu64 " = ok %" PRIu64 " + failed %" PRIu64 " + in flight %" PRIu64
           " + never sent %" PRIu64 "%s\n",
           w->scheduled, w->ok, w->failed, w->in_flight, w->never_sent,
           accounts_balanced(w) ? "" : "  DOES NOT BALANCE");
    if (before->scheduled != 0)
        printf("  before it    scheduled %" PRIu64 " = ok %" PRIu64 " + failed %" PRIu64
               " + in flight %" PRIu64 "\n",
               before->scheduled, before->ok, before->failed, before->in_flight);
}

static void print_handshakes(const char *kind, const struct hist *h, const char *end)
{
    printf("%" PRIu64 " %s hand-shakes", h->count, kind);
    if (h->count != 0)
        printf(" (50 %% %s, 99 %% %s)", percentile(h, 50).text, percentile(h, 99).text);
    fputs(end, stdout);
}

static void print_tls(const struct tally *y)
{
    for (size_t i = 0; i < y->agreement.count; i++) {
        const struct agreement *a = &y->agreement.rows[i];
        printf("  TLS          %" PRIu64 " connections with %s, %s%s%s\n", a->connections, a->agreed.version,
               a->agreed.suite, a->agreed.group[0] != '\0' ? ", " : "", a->agreed.group);
    }
    fputs("               ", stdout);
    print_handshakes("full", &y->hists[TALLY_HANDSHAKE], ", ");
    print_handshakes("resumed", &y->hists[TALLY_HANDSHAKE_RESUMED], "\n");
}

static void print_open_loop(const struct tally *y)
{
    const struct hist *service = &y->hists[TALLY_SERVICE];
    const struct hist *lag = &y->hists[TALLY_SEND_LAG];
    printf("  service      50 %% %s, 99 %% %s (from sending; latency counts from when a request was due)\n",
           percentile(service, 50).text, percentile(service, 99).text);
    printf("  send lag     50 %% %s, 99 %% %s, %" PRIu64 " late by more than 1ms", percentile(lag, 50).text,
           percentile(lag, 99).text, y->audit.late);
    if (audit_gap_cv(&y->audit) >= 0)
        printf(", gap CV %.2f", audit_gap_cv(&y->audit));
    puts("");
}

void result_text(const struct run_result *r, const struct options *o, const struct target *t)
{
    const struct tally *y = r->tally;
    const struct accounts *w = &y->accounts[PHASE_WINDOW];
    uint64_t window_ns = r->window_end_ns - r->window_start_ns;
    double seconds = (double)window_ns / (double)NS_PER_S;
    char length[32];
    printf("%s: %u connection%s, %u thread%s, %s%s\n", t->url, o->connections, o->connections != 1 ? "s" : "",
           o->threads, o->threads != 1 ? "s" : "", parse_duration_text(window_ns, length, sizeof length),
           r->interrupted ? " (ended early)" : "");
    printf("  throughput   %.1f requests/s, %s/s in\n", seconds > 0 ? (double)w->ok / seconds : 0,
           bytes_text(seconds > 0 ? (double)w->wire_in / seconds : 0).text);
    print_latency(&y->hists[TALLY_LATENCY]);
    print_accounts(y);
    printf("  status      ");
    for (unsigned code = 0; code < TALLY_STATUS_MAX; code++)
        if (y->status[code] != 0)
            printf(" %u: %" PRIu64, code, y->status[code]);
    puts("");
    print_faults("failures", &y->faults[PHASE_WINDOW]);
    print_faults("failures before the window", &y->faults[PHASE_WARMUP]);
    if (y->agreement.count != 0)
        print_tls(y);
    if (o->open_loop)
        print_open_loop(y);
    uint64_t cpu_ns = y->cpu_user_ns + y->cpu_system_ns;
    printf("  own cost     %.0f %% of a CPU", seconds > 0 ? (double)cpu_ns / (double)window_ns * 100 : 0);
    if (w->responses != 0)
        printf(", %s a request", live_time(cpu_ns / w->responses).text);
    printf(", %s\n", bytes_text(figure_real(r->figures[FIGURE_RSS_BYTES_MAX])).text);
    if (r->verdict.limit == LIMIT_CPU)
        printf("  NOTE         a thread was busy for %.0f %% of the window: the generator may have been the "
               "limit\n",
               r->verdict.value * 100);
    else if (r->verdict.limit == LIMIT_LAG)
        printf("  NOTE         requests left up to %s late by the generator's own fault (99 %%)\n",
               live_time((uint64_t)r->verdict.value).text);
}
