#include "controller/run/gate.h"

#include <inttypes.h>

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

/* "connect refused 12, wait timeout 3" of the largest classes; "" when there is none. */
static void write_classes(const struct msg_loaded *l, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < l->error_count && i < 4 && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s %s %" PRIu64, i ? ", " : ": ",
                         msg_text(l->errors[i].phase), msg_text(l->errors[i].cause), l->errors[i].count);
        if (n > 0)
            used += (size_t)n;
    }
}

static enum gate judge_load(const struct experiment_gates *gates, const struct msg_loaded *l, char *reason,
                            size_t size)
{
    const struct msg_accounts *a = &l->window;
    char classes[256];
    if (!balanced(a)) {
        snprintf(reason, size,
                 "scheduled %" PRIu64 " is not ok %" PRIu64 " + failed %" PRIu64 " + in flight %" PRIu64
                 " + never sent %" PRIu64,
                 a->scheduled, a->ok, a->failed, a->in_flight, a->never_sent);
        return GATE_ACCOUNTS;
    }
    write_classes(l, classes, sizeof(classes));
    if (a->ok == 0) {
        snprintf(reason, size, "no request was completed, %" PRIu64 " failed%s", a->failed, classes);
        return GATE_ZERO;
    }
    if (l->short_bodies > 0) {
        snprintf(reason, size, "%" PRIu64 " responses had another length than expected", l->short_bodies);
        return GATE_SHORT_BODIES;
    }
    if (a->failed > gates->errors_max) {
        snprintf(reason, size, "%" PRIu64 " requests failed, %" PRIu64 " are allowed%s", a->failed,
                 gates->errors_max, classes);
        return GATE_ERRORS;
    }
    return GATE_NONE;
}

static bool over(double figure, double max, const char *what, const char *unit, char *reason, size_t size)
{
    if (figure < 0)
        snprintf(reason, size, "%s is not known", what);
    else if (figure > max)
        snprintf(reason, size, "%s was %.2f%s, %.2f is allowed", what, figure, unit, max);
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
