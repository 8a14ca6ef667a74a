#ifndef AGENT_TELEMETRY_FIELDS_H
#define AGENT_TELEMETRY_FIELDS_H
/*
 * Numbers out of the kernel's text files (/proc, cgroup). Owns nothing; any thread.
 */
#include "common/base.h"

/* Skips blanks and takes a decimal number that ends at a blank, an end of line or the end; `*at` moves behind
 * it. False, and nothing changed, for anything else. */
bool fields_take(const char **at, uint64_t *out);

/* Skips `count` words of any kind; false when there are fewer. */
bool fields_skip(const char **at, unsigned count);

#endif
