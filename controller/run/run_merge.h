#ifndef CONTROLLER_RUN_RUN_MERGE_H
#define CONTROLLER_RUN_RUN_MERGE_H
/*
 * The results of several load hosts as one: counts are added, figures merged as common/figure_list.h has it,
 * histograms merged without loss. Any thread.
 */
#include "proto/msg/msg.h"

/* Fills `out`, to be freed with msg_loaded_fini. ERR_INVALID when a histogram is none. */
NODISCARD enum err run_merge(const struct msg_loaded *const *parts, size_t count, struct msg_loaded *out,
                             struct err_detail *d);

#endif
