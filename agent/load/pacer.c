#include "agent/load/pacer.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <math.h>

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static enum err parse_stage(struct pacer_stage *s, char *text, struct err_detail *d)
{
    char *rates = strchr(text, ':');
    if (rates == NULL)
        return err_set(d, ERR_INVALID, "--stages: '%s': write DURATION:RATE or DURATION:FROM-TO", text);
    *rates++ = '\0';
    enum err e = parse_duration(text, &s->duration_ns, "--stages", d);
    if (e != ERR_OK)
        return e;
    if (s->duration_ns == 0)
        return err_set(d, ERR_INVALID, "--stages: a stage of no duration");
    uint64_t from = 0;
    char *to_text = strchr(rates, '-');
    if (to_text != NULL)
        *to_text++ = '\0';
    e = parse_u64(rates, 0, PACER_RATE_MAX, &from, "--stages", d);
    uint64_t to = from;
    if (e == ERR_OK && to_text != NULL)
        e = parse_u64(to_text, 0, PACER_RATE_MAX, &to, "--stages", d);
    s->from_per_s = (double)from;
    s->to_per_s = (double)to;
    return e;
}

enum err pacer_schedule_parse(struct pacer_schedule *s, const char *text, struct err_detail *d)
{
    s->count = 0;
    char *copy = mem_strdup(text);
    char *rest = copy;
    char *word;
    enum err e = ERR_OK;
    while (e == ERR_OK && (word = strsep(&rest, ",")) != NULL) {
        if (s->count == PACER_STAGES_MAX)
            e = err_set(d, ERR_TOO_BIG, "--stages: more than %u stages", PACER_STAGES_MAX);
        else
            e = parse_stage(&s->stages[s->count++], word, d);
    }
    free(copy);
    if (e == ERR_OK && pacer_schedule_duration(s) > PACER_DURATION_MAX_H * 3600 * NS_PER_S)
        e = err_set(d, ERR_TOO_BIG, "--stages: longer than %u hours in all", PACER_DURATION_MAX_H);
    if (e == ERR_OK && pacer_schedule_total(s) < 1)
        e = err_set(d, ERR_INVALID, "--stages: the schedule holds not one request");
    return e;
}

uint64_t pacer_schedule_duration(const struct pacer_schedule *s)
{
    uint64_t total = 0;
    for (size_t i = 0; i < s->count; i++)
        total += s->stages[i].duration_ns;
    return total;
}

static double stage_total(const struct pacer_stage *s)
{
    return (s->from_per_s + s->to_per_s) / 2 * seconds(s->duration_ns);
}

double pacer_schedule_total(const struct pacer_schedule *s)
{
    double total = 0;
    for (size_t i = 0; i < s->count; i++)
        total += stage_total(&s->stages[i]);
    return total;
}

/* xorshift64*: (Vigna 2016), good enough for arrival times. A number in (0, 1]. */
static double next_uniform(struct pacer *p)
{
    p->random ^= p->random >> 12;
    p->random ^= p->random << 25;
    p->random ^= p->random >> 27;
    uint64_t bits = p->random * UINT64_C(0x2545f4914f6cdd1d);
    return ((double)(bits >> 11) + 1) / 9007199254740992.0; /* 2^53 */
}

/*
 * The instant at which the count of arrivals reaches `position`. Within a stage the count grows as
 * from * t + (to - from) / (2 * duration) * t^2; solved for t in the form that also holds for from == to.
 */
static void locate(struct pacer *p)
{
    const struct pacer_schedule *s = p->schedule;
    while (p->stage < s->count && p->position >= p->stage_first + stage_total(&s->stages[p->stage])) {
        p->stage_first += stage_total(&s->stages[p->stage]);
        p->stage_ns += s->stages[p->stage].duration_ns;
        p->stage++;
    }
    if (p->stage == s->count) {
        p->next_ns = UINT64_MAX;
        return;
    }
    const struct pacer_stage *stage = &s->stages[p->stage];
    double count = p->position - p->stage_first;
    double slope = (stage->to_per_s - stage->from_per_s) / seconds(stage->duration_ns);
    double root = sqrt(fmax(stage->from_per_s * stage->from_per_s + 2 * slope * count, 0));
    double t = count > 0 ? 2 * count / (stage->from_per_s + root) : 0;
    p->next_ns = p->start_ns + p->stage_ns + (uint64_t)(t * (double)NS_PER_S + 0.5);
}

void pacer_init(struct pacer *p, const struct pacer_schedule *s, uint64_t start_ns, uint32_t index,
                uint32_t threads, uint64_t seed)
{
    *p = (struct pacer){.schedule = s, .start_ns = start_ns, .step = threads};
    p->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (index + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    p->random |= 1; /* never all zero */
    for (int i = 0; i < 8; i++)
        (void)next_uniform(p);
    p->position = s->arrivals == ARRIVALS_EVEN ? index : -log(next_uniform(p)) * p->step;
    locate(p);
}

void pacer_advance(struct pacer *p)
{
    p->position += p->schedule->arrivals == ARRIVALS_EVEN ? p->step : -log(next_uniform(p)) * p->step;
    locate(p);
}
