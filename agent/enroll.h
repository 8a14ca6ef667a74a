#ifndef AGENT_ENROLL_H
#define AGENT_ENROLL_H
/*
 * Once a machine: a key is made, the controller signs a certificate for a one-time token, and where that
 * controller is gets written beside them, so that `run` needs no address. Owned by main(); blocking.
 */
#include "agent/invocation.h"

/* Does the `enroll` command; prints what to do next. ERR_EXISTS when there is an identity already. */
NODISCARD enum err enroll_run(const struct invocation *options, struct err_detail *d);

/* The address kept at enrollment in DIR/controller. ERR_NOT_FOUND says what to do. The caller frees. */
NODISCARD enum err enroll_read_controller(const char *identity_dir, char **out, struct err_detail *d);

/* Adds to why this identity is refused (ERR_DENIED; others stay) the one thing to do about it. Returns `e`.
 */
enum err enroll_advise(struct err_detail *d, enum err e, const char *identity_dir);

/* This host's name as an agent's name: what is not allowed in one becomes '-'. The caller frees. */
char *enroll_default_name(void);

#endif
