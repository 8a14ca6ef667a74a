#ifndef AGENT_LOAD_RESULT_TEXT_H
#define AGENT_LOAD_RESULT_TEXT_H
/*
 * The result for people, on standard output.
 */
#include "agent/load/run.h"

void result_text(const struct run_result *r, const struct options *o, const struct target *t);

#endif
