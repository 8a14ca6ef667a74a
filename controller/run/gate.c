#include "controller/run/gate.h"

#include "common/parse.h"
#include "controller/run/failure_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static const char *const names[GATE_COUNT] = {
#define X(name, text) [GATE_##name] = text,
    GATE_LIST(X)
#undef X
};

const char *gate_name(enum gate g)
{
    return (unsigned)g < GATE_COUNT ? names[g] : "?";
}

static bool balanced(const struct msg_accounts *a)
{
    uint64_t sum = 0;
    return !__builtin_add_overflow(a->ok, a->failed, &sum) &&
           !__builtin_add_overflow(sum, a->in_flight, &sum) &&
           !__builtin_add_overflow(sum, a->never_sent, &sum) && sum == a->scheduled;
}

#define CLASSES_SHOWN 4u

struct phrase {
    char *out;
    size_t size;
    size_t used;
    size_t count;
};

static void add(struct phrase *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add(struct phrase *p, const char *fmt, ...)
{
    if (p->count == CLASSES_SHOWN)
        return;
    size_t used = p->used + (size_t)snprintf(p->out + p->used, p->size - p->used, p->count ? ", " : ": ");
    va_list ap;
    va_start(ap, fmt);
    int n = used < p->size ? vsnprintf(p->out + used, p->size - used, fmt, ap) : -1;
    va_end(ap);
    if (n < 0 || used + (size_t)n >= p->size) {
        p->out[p->used] = '\0'; /* not half a figure */
        p->count = CLASSES_SHOWN;
        return;
    }
    p->used = used + (size_t)n;
    p->count++;
}

static void add_class(struct phrase *p, const struct msg_error_class *c)
{
    const char *words = failure_words(msg_text(c->phase), msg_text(c->cause));
    if (words != NULL)
        add(p, "%" PRIu64 " %s", c->count, words);
    else
        add(p, "%" PRIu64 " with %s %s", c->count, msg_text(c->phase), msg_text(c->cause));
}

/* The one check of an answer that an experiment can ask of the generator is expect.body_bytes. */
static bool is_wrong_length(const struct msg_error_class *c)
{
    return strcmp(msg_text(c->cause), "check") == 0;
}

/* ": 81 answered with status 501, 3 without an answer in time" of the largest classes; "" when there is none.
 * Wrong statuses are one class of errors: their own counts say more. */
static void write_classes(const struct msg_loaded *l, char *out, size_t size)
{
    struct phrase p = {.out = out, .size = size};
    out[0] = '\0';
    for (size_t i = 0; i < l->error_count; i++) {
        const struct msg_error_class *c = &l->errors[i];
        size_t wrong = 0;
        for (size_t k = 0; strcmp(msg_text(c->cause), "status") == 0 && k < l->status_count; k++) {
            bool good = l->statuses[k].status >= 200 && l->statuses[k].status < 300;
            if (!good && ++wrong <= CLASSES_SHOWN)
                add(&p, "%" PRIu64 " answered with status %" PRIu32, l->statuses[k].count,
                    l->statuses[k].status);
        }
        if (is_wrong_length(c))
            add(&p, "%" PRIu64 " answered with another length than expect.body_bytes", c->count);
        else if (wrong == 0)
            add_class(&p, c);
    }
}

/* Allowed errors do not cover these: what else came of such a server cannot be compared. */
static bool bodies_are_wrong(const struct msg_loaded *l, char *reason, size_t size)
{
    struct figure short_bodies = l->figures[FIGURE_SHORT_BODIES];
    uint64_t wrong = 0;
    for (size_t i = 0; i < l->error_count; i++)
        if (is_wrong_length(&l->errors[i]) && __builtin_add_overflow(wrong, l->errors[i].count, &wrong))
            wrong = UINT64_MAX;
    if (wrong > 0)
        snprintf(reason, size, "%" PRIu64 " response%s had another length than expect.body_bytes", wrong,
                 wrong == 1 ? "" : "s");
    else if (short_bodies.known && short_bodies.value > 0)
        snprintf(reason, size, "%" PRIu64 " response%s ended before the body was whole", short_bodies.value,
                 short_bodies.value == 1 ? "" : "s");
    else
        return false;
    return true;
}

static enum gate judge_load(const struct experiment_gates *gates, const struct msg_loaded *l, char *reason,
                            size_t size)
{
    const struct msg_accounts *a = &l->window;
    char classes[384];
    if (!balanced(a)) {
        snprintf(reason, size,
                 "scheduled %" PRIu64 " is not ok %" PRIu64 " + failed %" PRIu64 " + in flight %" PRIu64
                 " + never sent %" PRIu64,
                 a->scheduled, a->ok, a->failed, a->in_flight, a->never_sent);
        return GATE_ACCOUNTS;
    }
    write_classes(l, classes, sizeof classes);
    if (a->ok == 0) {
        snprintf(reason, size, "no request was completed, %" PRIu64 " failed%s", a->failed, classes);
        return GATE_ZERO;
    }
    if (bodies_are_wrong(l, reason, size))
        return GATE_SHORT_BODIES;
    struct figure unanswered = l->figures[FIGURE_UNANSWERED];
    if (unanswered.known && unanswered.value > gates->errors_max) {
        snprintf(reason, size, "%" PRIu64 " request%s in flight at the end got no answer", unanswered.value,
                 unanswered.value == 1 ? "" : "s");
        return GATE_ERRORS;
    }
    if (a->failed > gates->errors_max) {
        char allowed[48] = "";
        if (gates->errors_max > 0)
            snprintf(allowed, sizeof allowed, ", %" PRIu64 " allowed", gates->errors_max);
        snprintf(reason, size, "%" PRIu64 " request%s failed%s%s", a->failed, a->failed == 1 ? "" : "s",
                 allowed, classes);
        return GATE_ERRORS;
    }
    return GATE_NONE;
}

static bool over(double figure, double max, const char *what, const char *unit, char *reason, size_t size)
{
    if (figure < 0)
        snprintf(reason, size, "%s is not known", what);
    else if (figure > max)
        snprintf(reason, size, "%s was %.2f%s, %g is allowed", what, figure, unit, max);
    else
        return false;
    return true;
}

enum gate gate_judge(const struct experiment_gates *gates, const struct gate_figures *f,
                     char reason[GATE_REASON_BYTES])
{
    reason[0] = '\0';
    if (f->server_died != NULL) {
        snprintf(reason, GATE_REASON_BYTES, "the server on '%s' died: %s", f->server_agent, f->server_died);
        return GATE_SERVER_DIED;
    }
    if (f->generator_failed != NULL) {
        snprintf(reason, GATE_REASON_BYTES, "%s", f->generator_failed);
        return GATE_GENERATOR_FAILED;
    }
    enum gate g = judge_load(gates, f->loaded, reason, GATE_REASON_BYTES);
    if (g != GATE_NONE)
        return g;
    if (f->start_skew_ns == UINT64_MAX) {
        snprintf(reason, GATE_REASON_BYTES,
                 "it is not known whether the load hosts began their windows together");
        return GATE_START_SKEW;
    }
    if (f->start_skew_ns > f->start_skew_max_ns) {
        char skew[32], max[32];
        snprintf(reason, GATE_REASON_BYTES, "the load hosts began their windows %s apart, %s is allowed",
                 parse_duration_text(f->start_skew_ns, skew, sizeof skew),
                 parse_duration_text(f->start_skew_max_ns, max, sizeof max));
        return GATE_START_SKEW;
    }
    if (gates->has_foreign_cpu &&
        over(f->foreign_cpu_server, gates->foreign_cpu_max, "CPU used by others on the server host", " cores",
             reason, GATE_REASON_BYTES))
        return GATE_FOREIGN_CPU;
    if (gates->has_foreign_cpu &&
        over(f->foreign_cpu_load, gates->foreign_cpu_max, "CPU used by others on the load host", " cores",
             reason, GATE_REASON_BYTES))
        return GATE_FOREIGN_CPU;
    if (gates->has_generator_cpu && over(f->generator_cpu, gates->generator_cpu_max,
                                         "the generator's share of its CPUs", "", reason, GATE_REASON_BYTES))
        return GATE_GENERATOR_CPU;
    return GATE_NONE;
}
