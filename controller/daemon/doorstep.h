#ifndef CONTROLLER_DAEMON_DOORSTEP_H
#define CONTROLLER_DAEMON_DOORSTEP_H
/*
 * Who of those without a certificate may try a token: how many wrong ones came from where, and how many are
 * being dealt with. Owned by the server; the loop's thread. Times are those of clock_now_ns.
 */
#include "common/clock.h"
#include "common/err.h"

#define DOORSTEP_WRONG_MAX     10u             /* refused tokens of one network in DOORSTEP_PERIOD_NS */
#define DOORSTEP_PERIOD_NS     (60 * NS_PER_S) /* from the first of them on */
#define DOORSTEP_NETWORK_MAX   32u             /* under way for one network: a rack that enrolls at once */
#define DOORSTEP_UNDER_WAY_MAX 128u            /* in all; each costs a signature, and waits for the disk */
#define DOORSTEP_NETWORKS_MAX  512u            /* remembered; beyond it those seen longest ago are not */

struct doorstep;

struct doorstep *doorstep_new(void);
void doorstep_free(struct doorstep *s);

/* A token comes from `network` (link_request_network). ERR_OK: it is under way until doorstep_leave.
 * ERR_BUSY: too many wrong ones came from there, or too many are under way; says what to do. */
NODISCARD enum err doorstep_enter(struct doorstep *s, uint64_t network, uint64_t now_ns,
                                  struct err_detail *d);
/* `wrong`: the token was refused. True when that was the last one that the network had. */
bool doorstep_leave(struct doorstep *s, uint64_t network, bool wrong, uint64_t now_ns);

#endif
