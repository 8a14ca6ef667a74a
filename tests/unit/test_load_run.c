#include "agent/load/accounts.h"
#include "agent/load/fault.h"
#include "agent/load/hlog.h"
#include "agent/load/options.h"
#include "agent/load/timeline.h"
#include "common/clock.h"
#include "common/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

/* --- time line --- */

static struct interval *interval_with(uint64_t index, uint64_t latency_ns, unsigned ok, unsigned failed)
{
    struct interval *i = interval_new(index, index * NS_PER_S);
    i->end_ns = (index + 1) * NS_PER_S;
    i->failed = failed;
    for (unsigned k = 0; k < ok; k++)
        hist_record(&i->latency, latency_ns);
    return i;
}

struct heard {
    unsigned count;
    uint64_t last_start_ns;
};

static void on_point(void *arg, const struct timeline_point *p, const struct hist *latency)
{
    struct heard *h = arg;
    assert_int_equal(latency->count, p->ok);
    assert_true(h->count == 0 || p->start_ns > h->last_start_ns);
    h->last_start_ns = p->start_ns;
    h->count++;
}

/* Whatever order the workers deliver in, points come in order, and only when all have delivered. */
static void test_intervals_of_all_workers_make_a_point(void **unused)
{
    (void)unused;
    struct heard heard = {0};
    struct timeline t;
    struct interval_box box;
    timeline_init(&t, 2, on_point, &heard);
    interval_box_init(&box);
    static const uint64_t order[] = {0, 1, 2, 0, 1, 2};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        struct interval *one = interval_with(order[i], (i + 1) * NS_PER_MS, 10, 1);
        interval_box_put(&box, &one);
        assert_null(one);
        timeline_add(&t, interval_box_take(&box));
        assert_int_equal(heard.count, i < 3 ? 0 : i - 2);
    }
    assert_null(interval_box_take(&box));
    assert_int_equal(t.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(t.points[i].start_ns, i * NS_PER_S);
        assert_int_equal(t.points[i].ok, 20);
        assert_int_equal(t.points[i].failed, 2);
        assert_int_equal(t.points[i].max_ns, (i + 4) * NS_PER_MS);
        assert_int_equal(t.points[i].p50_ns, hist_highest_equivalent((i + 1) * NS_PER_MS));
    }
    struct interval *left = interval_with(9, 1, 1, 0); /* never completed: freed with the time line */
    interval_box_put(&box, &left);
    timeline_add(&t, interval_box_take(&box));
    timeline_fini(&t);
    interval_box_fini(&box);
}

static void test_intervals_grow_with_the_window(void **unused)
{
    (void)unused;
    assert_int_equal(timeline_interval(1), NS_PER_S);
    assert_int_equal(timeline_interval(7000 * NS_PER_S), NS_PER_S);
    uint64_t day = timeline_interval(24 * 3600 * NS_PER_S);
    assert_true(24 * 3600 * NS_PER_S / day < TIMELINE_POINTS_MAX && day > NS_PER_S);
}

static void test_the_log_is_what_other_tools_read(void **unused)
{
    (void)unused;
    char path[] = "/tmp/test_load_run.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct hlog l;
    assert_int_equal(hlog_open(&l, path, NULL), ERR_OK);
    struct interval *i = interval_with(1, 1500000, 7, 0);
    hlog_start(&l, i->start_ns);
    hlog_add(&l, i->start_ns, i->end_ns, &i->latency);
    assert_int_equal(hlog_close(&l, NULL), ERR_OK);
    FILE *f = fopen(path, "r");
    char line[4096];
    unsigned comments = 0;
    while (fgets(line, sizeof line, f) != NULL && line[0] == '#')
        comments++;
    assert_int_equal(comments, 4);
    assert_string_equal(
        line, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
    assert_non_null(fgets(line, sizeof line, f));
    assert_memory_equal(line, "0.000,1.000,1.500,HISTFAAA", 26);
    struct hist *back = hist_new();
    assert_int_equal(hist_decode(back, line + 18, strlen(line + 18) - 1, NULL), ERR_OK);
    assert_int_equal(back->count, 7);
    hist_free(back);
    fclose(f);
    unlink(path);
    interval_free(i);
    struct err_detail d;
    assert_int_equal(hlog_open(&l, "/nonexistent/x.hlog", &d), ERR_IO);
    assert_int_equal(hlog_open(&l, "/dev/full", &d), ERR_OK);
    hlog_start(&l, 0);
    assert_int_equal(hlog_close(&l, &d), ERR_IO);
}

/* --- accounts and faults --- */

static void test_accounts_balance_or_do_not(void **unused)
{
    (void)unused;
    struct accounts a = {.scheduled = 10, .ok = 4, .failed = 3, .in_flight = 2, .never_sent = 1};
    struct accounts b = {.scheduled = 5, .ok = 5, .sent = 7};
    assert_true(accounts_balanced(&a));
    accounts_merge(&a, &b);
    assert_int_equal(a.ok, 9);
    assert_int_equal(a.sent, 7);
    assert_true(accounts_balanced(&a));
    a.ok++;
    assert_false(accounts_balanced(&a));
}

static void test_faults_keep_their_first_sample(void **unused)
{
    (void)unused;
    struct fault_table *a = mem_zalloc(1, sizeof *a);
    struct fault_table *b = mem_zalloc(1, sizeof *b);
    char large[2 * FAULT_SAMPLE_BYTES];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    large[3] = '\x07';
    fault_note(a, &(struct fault){FAULT_WAIT, CAUSE_STALE, "first"});
    fault_note(a, &(struct fault){FAULT_WAIT, CAUSE_STALE, "second"});
    fault_note(b, &(struct fault){FAULT_WAIT, CAUSE_STALE, "third"});
    fault_note(b, &(struct fault){FAULT_TLS, CAUSE_VERIFY, large});
    fault_merge(a, b);
    assert_int_equal(a->cells[FAULT_WAIT][CAUSE_STALE].count, 3);
    assert_string_equal(a->cells[FAULT_WAIT][CAUSE_STALE].sample, "first");
    const char *sample = a->cells[FAULT_TLS][CAUSE_VERIFY].sample;
    assert_int_equal(strlen(sample), FAULT_SAMPLE_BYTES - 1);
    assert_memory_equal(sample, "xxx?x", 5);
    assert_int_equal(fault_total(a), 4);
    free(a);
    free(b);
    static const struct {
        int errnum;
        enum fault_cause cause;
    } causes[] = {{ECONNREFUSED, CAUSE_REFUSED},
                  {ECONNRESET, CAUSE_RESET},
                  {EPIPE, CAUSE_RESET},
                  {ETIMEDOUT, CAUSE_TIMEOUT},
                  {ENETUNREACH, CAUSE_UNREACHABLE},
                  {EADDRNOTAVAIL, CAUSE_LOCAL},
                  {EMFILE, CAUSE_LOCAL},
                  {EPERM, CAUSE_OTHER}};
    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        assert_int_equal(fault_cause_of_errno(causes[i].errnum), causes[i].cause);
}

/* --- options --- */

static enum args_result parse(struct options *o, struct err_detail *d, const char *line)
{
    static char copy[1024];
    char *argv[32] = {(char *)"splitbench-load"};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    char *rest = copy;
    char *word;
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word != '\0')
            argv[argc++] = word;
    d->text[0] = '\0';
    return options_parse(o, argc, argv, d);
}

static void test_reads_options(void **unused)
{
    (void)unused;
    struct options o;
    struct err_detail d;
    assert_int_equal(
        parse(&o, &d, "http://h/ -c 7 -t 3 -d 2s --warmup 1s -m PUT -H a:b -b text -o json --cpus 1"),
        ARGS_GO);
    assert_true(o.connections == 7 && o.threads == 3 && o.duration_ns == 2 * NS_PER_S &&
                o.warmup_ns == NS_PER_S);
    assert_true(o.has_body && o.body_len == 4 && o.headers.count == 1 && o.output == OUTPUT_JSON &&
                o.has_cpus);
    assert_false(o.open_loop);
    options_fini(&o);
    assert_int_equal(parse(&o, &d, "-R 100 http://h/ --arrivals poisson --warmup 3s -d 4s"), ARGS_GO);
    assert_true(o.open_loop && o.schedule.count == 1 && o.schedule.arrivals == ARRIVALS_POISSON);
    assert_true(o.schedule.stages[0].from_per_s == 100 && o.schedule.stages[0].duration_ns == 4 * NS_PER_S);
    assert_true(o.warmup_schedule.stages[0].duration_ns == 3 * NS_PER_S);
    options_fini(&o);
    assert_int_equal(parse(&o, &d, "http://h/ --stages 1s:5,2s:5-10"), ARGS_GO);
    assert_true(o.open_loop && o.duration_ns == 3 * NS_PER_S);
    options_fini(&o);
    assert_int_equal(parse(&o, &d, "--calibrate"), ARGS_GO);
    assert_null(o.url);
    options_fini(&o);
}

static void test_refuses_bad_options(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"",
                                      "http://a/ http://b/",
                                      "http://h/ -c 0",
                                      "http://h/ -c 100001",
                                      "http://h/ -c",
                                      "http://h/ -c 2 -t 3",
                                      "http://h/ -d 10",
                                      "http://h/ -d 0s",
                                      "http://h/ -o xml",
                                      "http://h/ --conections 5",
                                      "http://h/ -R 0",
                                      "http://h/ -R 10000001",
                                      "http://h/ -R 5 --stages 1s:5",
                                      "http://h/ --stages 1s:5 -d 5s",
                                      "http://h/ --arrivals odd",
                                      "http://h/ --arrivals poisson",
                                      "http://h/ --unix-socket x --source 127.0.0.1",
                                      "http://h/ --backend epoll",
                                      "http://h/ --cpus x",
                                      "http://h/ --source nowhere",
                                      "http://h/ --expect-status 20",
                                      "http://h/ --expect-length -1",
                                      "http://h/ --requests f -m GET",
                                      "http://h/ -b @/nonexistent",
                                      "http://h/ --start-at 0",
                                      "http://h/ --report-every 1ms",
                                      "http://h/ --report-every 10ms -d 100s",
                                      "http://h/ --requests-per-connection 0",
                                      "http://h/ --timeout 0"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct options o;
        struct err_detail d;
        if (parse(&o, &d, bad[i]) != ARGS_BAD)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strlen(d.text) > 10);
        options_fini(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_of_all_workers_make_a_point),
        cmocka_unit_test(test_intervals_grow_with_the_window),
        cmocka_unit_test(test_the_log_is_what_other_tools_read),
        cmocka_unit_test(test_accounts_balance_or_do_not),
        cmocka_unit_test(test_faults_keep_their_first_sample),
        cmocka_unit_test(test_reads_options),
        cmocka_unit_test(test_refuses_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
