#ifndef TESTS_SUPPORT_REPORT_READING_H
#define TESTS_SUPPORT_REPORT_READING_H
/*
 * What a report says, for assertions about it. Stateless; what is not there fails the running cmocka test.
 */
#include "controller/report/model.h"

#define READING_BYTES_MAX (8u * 1024u * 1024u)

const struct report_cell *reading_cell(const struct report *r, uint32_t target, uint32_t connections);

/* The report as text of this width: free. */
char *reading_text(const struct report *r, unsigned width);

/* The report as JSON: free. */
char *reading_json(const struct report *r);

/* Is this part of one of its warnings? */
bool reading_warns(const struct report *r, const char *what);

void assert_says(const char *text, const char *what);
/* But for rounding: to 9 digits. */
void assert_near(double got, double expected);

#endif
