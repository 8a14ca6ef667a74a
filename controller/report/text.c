#include "controller/report/text.h"

/* Below this a terminal gets long lines rather than unreadable tables. */
#define WIDTH_MIN 80u
#define WIDTH_MAX 200u
#define INDENT    14u

bool text_is_over(const struct report *r)
{
    return r->results.job.state != STORE_JOB_QUEUED && r->results.job.state != STORE_JOB_RUNNING;
}

/* What it means to be behind the best, and how often two equal servers would look so. */
static void put_chance(struct page *p, const struct report *r)
{
    size_t rounds = SIZE_MAX; /* the fewest that a difference rests on */
    for (size_t i = 0; i < r->design->cell_count; i++) {
        const struct report_cell *c = &r->cells[i];
        bool judged =
            c->standing.kind == STANDING_BEHIND || (c->standing.kind == STANDING_BEST && c->rate.n >= 2);
        rounds = judged && c->rate.n < rounds ? c->rate.n : rounds;
    }
    double chance = standings_chance(rounds);
    if (chance >= 0.001)
        page_say(
            p, "  -N%", INDENT,
            "behind the best: none of its rounds reached the slowest round of the best; with %zu rounds, two "
            "equal servers would look so in %.2g%% of cases",
            rounds, 100 * chance);
    else
        page_say(p, "  -N%", INDENT,
                 "behind the best: none of its rounds reached the slowest round of the best");
}

static void put_legend(struct page *p, const struct report *r)
{
    bool seen[STANDING_COUNT] = {false};
    bool any = false;
    for (size_t i = 0; i < r->design->cell_count; i++) {
        seen[r->cells[i].standing.kind] = true;
        any = any || r->cells[i].rate.n != 0;
    }
    if (!any)
        return;
    page_heading(p, "how to read it");
    page_say(
        p, "  req/s", INDENT,
        "complete 2xx answers a second, mean over the rounds with a valid window; SD of the sample, CV = "
        "SD/mean");
    page_say(p, "  latency", INDENT, "percentiles of the requests of all those rounds together");
    page_say(
        p, "  cost", INDENT,
        "CPU cores used by the server, by the generator, and by everything else on the server's (s) and the "
        "load's (l) host, mean of rounds; req/CPU-s: answers for each second of server CPU");
    if (seen[STANDING_TIE])
        page_say(
            p, "  tie", INDENT,
            "its rounds, from min to max, overlap those of the best: the difference is within the spread "
            "between rounds");
    if (seen[STANDING_BEHIND])
        put_chance(p, r);
    if (seen[STANDING_UNKNOWN])
        page_say(p, "  ?", INDENT,
                 "one round only: the spread between rounds is not known, and the order means nothing");
}

enum err report_write_text(const struct report *r, unsigned width, struct buf *out)
{
    struct page p = {.out = out,
                     .width = width < WIDTH_MIN   ? WIDTH_MIN
                              : width > WIDTH_MAX ? WIDTH_MAX
                                                  : width};
    bool runs = r->results.job.mode == MSG_MODE_RUN;
    text_put_job(&p, r);
    text_put_failures(&p, r);
    if (runs)
        text_put_groups(&p, r);
    text_put_targets(&p, r);
    if (runs) {
        text_put_invalid(&p, r);
        put_legend(&p, r);
    }
    return p.e;
}
