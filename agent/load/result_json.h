#ifndef AGENT_LOAD_RESULT_JSON_H
#define AGENT_LOAD_RESULT_JSON_H
/*
 * The result for programs: one JSON object, format "splitbench-load/1", described in docs/load.md.
 */
#include "agent/load/calibrate.h"
#include "agent/load/run.h"
#include "common/buf.h"

#define RESULT_FORMAT "splitbench-load/1"

/* Appends the object and a line end. `calibration` may be NULL. */
NODISCARD enum err result_json(struct buf *out, const struct run_result *r, const struct run_plan *plan,
                               const struct calibration *calibration);

#endif
