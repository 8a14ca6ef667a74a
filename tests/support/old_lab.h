#ifndef TESTS_SUPPORT_OLD_LAB_H
#define TESTS_SUPPORT_OLD_LAB_H
/*
 * The lab in tests/unit/data/lab_mbedtls: what a controller and its parties hold that were made before
 * OpenSSL. For cmocka tests that run in the tree's root; no state.
 */
#include "proto/identity/identity.h"

/* A file's text; the caller's. */
char *old_lab_read(const char *name);

/* The controller's directory, written to `dir`. */
void old_lab_write(const char *dir);

/* "agent" or "operator" as it was enrolled. */
void old_lab_party(const char *name, struct identity *out);

#endif
