#ifndef COMMON_PARSE_H
#define COMMON_PARSE_H
/*
 * Values that people type, read strictly: whole text or nothing, units required where one could guess.
 * `what` names the value in the error ("--connections"). Any thread.
 */
#include "common/err.h"

#include <sched.h>

/* Decimal integer in [min, max]. */
NODISCARD enum err parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out, const char *what,
                             struct err_detail *d);

/* "250us", "10ms", "1.5s", "2m", "1h" to ns. A bare number is refused, but 0 is fine. At most 1000 h. */
NODISCARD enum err parse_duration(const char *text, uint64_t *out_ns, const char *what, struct err_detail *d);

/* "0-3,8" to a CPU set; empty sets and CPUs from CPU_SETSIZE on are refused. */
NODISCARD enum err parse_cpus(const char *text, cpu_set_t *out, const char *what, struct err_detail *d);

/* "0-3,8" from a CPU set. Returns `out`, cut short when it does not fit. */
const char *parse_cpus_text(const cpu_set_t *set, char *out, size_t size);

/* "1.50s", "75s", "2m10s", "3h05m": a duration for people. Returns `out`. */
const char *parse_duration_text(uint64_t ns, char *out, size_t size);

/* The candidate closest to `word`, or NULL when none is close enough to be meant ("did you mean"). */
const char *parse_closest(const char *word, const char *const *candidates, size_t count);

#endif
