#ifndef CONTROLLER_REPORT_UNITS_H
#define CONTROLLER_REPORT_UNITS_H
/*
 * Numbers as people read them in a table: SI prefixes, few digits, "-" for what is not known (NAN). Pure
 * functions; any thread. Each writes into the caller's UNITS_TEXT_BYTES and returns it.
 */
#include "common/base.h"

#define UNITS_TEXT_BYTES 32u

/* "843.6", "52.34k", "1.204M": `digits` significant ones (2 to 6). */
const char *units_rate(double per_s, int digits, char *out);
/* "812ns", "1.84ms", "10.2s": three significant digits. */
const char *units_time(double ns, char *out);
/* "512B", "56.0MiB". */
const char *units_bytes(double bytes, char *out);
/* 0.0061 -> "0.6%"; with a sign when `sign`. */
const char *units_percent(double fraction, bool sign, char *out);
/* CPU cores: "1.98". */
const char *units_cores(double cores, char *out);

/* The end of a noun that is counted: "" for one, "s" for others. */
const char *units_plural(uint64_t n);

#endif
