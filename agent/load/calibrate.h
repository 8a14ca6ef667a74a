#ifndef AGENT_LOAD_CALIBRATE_H
#define AGENT_LOAD_CALIBRATE_H
/*
 * The generator's own floor on this host, with these settings: what it measures against the null server.
 * No latency below it can be seen, and no rate above it reached. Main's thread.
 */
#include "agent/load/options.h"
#include "common/clock.h"
#include "common/json_write.h"

#define CALIBRATE_DURATION_NS NS_PER_S /* of each of its two runs */

struct calibration_figures {
    uint32_t connections;
    double ok_per_s;
    uint64_t min_ns;
    uint64_t p50_ns;
    uint64_t p99_ns;
    uint64_t cpu_user_ns;   /* per request */
    uint64_t cpu_system_ns; /* per request */
};

struct calibration {
    struct calibration_figures one; /* a single connection: the latency floor */
    struct calibration_figures all; /* as many as asked for: the cost floor */
};

/* Closed loop, with the connections, threads, CPUs and back-end of `o`. Blocks for two runs. ERR_CANCELLED
 * after a signal. */
NODISCARD enum err calibrate(struct calibration *out, const struct options *o, struct err_detail *d);

void calibrate_print_text(const struct calibration *c);
void calibrate_print_json(const struct calibration *c, struct json_writer *j, const char *key);

#endif
