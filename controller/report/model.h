#ifndef CONTROLLER_REPORT_MODEL_H
#define CONTROLLER_REPORT_MODEL_H
/*
 * The inside of a report, for the files that build and write it. Figures that are not known are NAN. What
 * each figure is: docs/statistics.md.
 */
#include "controller/analysis/latency.h"
#include "controller/analysis/standings.h"
#include "controller/experiment/design.h"
#include "controller/report/report.h"
#include "controller/store/store_read.h"

/* Over the valid attempts of a cell that know the figure. */
struct report_usage {
    size_t n;
    double mean; /* NAN when n is 0 */
    double max;
};

/* A figure over the valid attempts of a cell; its row in common/figure_list.h says which is told. */
struct report_figure {
    struct figure sum; /* unknown when one attempt does not know it */
    struct report_usage usage;
};

struct report_cell {
    const struct design_cell *design; /* target, workload, connections */
    size_t windows;                   /* in the schedule */
    size_t present;                   /* with a final attempt */
    size_t made;                      /* attempts */
    size_t invalid;                   /* of them */
    struct stats_summary rate;        /* ok requests a second over rounds; n is 0 when withheld */
    struct standing standing;         /* in its group */
    struct latency_figures latency;
    size_t latency_missing; /* valid windows without a readable histogram */
    uint64_t ok;            /* requests in valid windows */
    uint64_t failed;
    double body_bytes_per_s; /* of ok answers, over the time of their windows */
    struct report_figure load[FIGURE_LOAD_COUNT];
    struct report_figure server[FIGURE_TREE_COUNT];
#define X(name, ...) struct report_usage name;
    FIGURE_WINDOW_LIST(X)
#undef X
    double ok_per_server_cpu_s; /* sum of ok over sum of CPU seconds, where both are known */
};

struct report_target {
    size_t starts;
    size_t failed_starts;
    bool withheld;            /* a check failed: no number */
    const char *failed_check; /* the first one; borrowed from the results, as the next */
    const char *why;          /* what was wrong, with the round it happened in */
    uint32_t failed_round;
    struct stats_summary startup_ns; /* over runs that came up and answered rightly */
    struct stats_summary rss_before_bytes;
    struct stats_summary rss_after_bytes;
};

struct report {
    struct store *store; /* borrowed, in a snapshot */
    struct store_results results;
    struct experiment *experiment;
    struct design *design;
    struct report_cell *cells;     /* design->cell_count, in its order */
    uint32_t *windows;             /* their numbers, cell by cell */
    size_t *first;                 /* of a cell's windows in `windows`; one more than there are cells */
    struct report_target *targets; /* experiment->target_count */
    size_t windows_present;
    size_t windows_missing; /* should have a final attempt and have none; 0 for a job that only verifies */
    size_t windows_invalid; /* no attempt passed the gates, and none is left */
    size_t attempts_invalid;
    size_t attempts_unusable;               /* valid, but without a result or with a window of no length */
    size_t attempts_foreign;                /* of windows that the schedule does not have */
    bool *run_counts;                       /* results.run_count: a figure is made from it */
    bool placements[STORE_PLACEMENT_COUNT]; /* of what the figures were made from */
    struct msg_strings warnings;            /* sentences that belong above the tables, worst first */
};

/* A group is what is compared: the cells of one workload and number of connections, one for each target. In
 * the order of the experiment file. */
size_t report_group_count(const struct report *r);
/* The indices of its cells, the best first (standings_order); `out` holds target_count. */
void report_order_group(const struct report *r, size_t group, size_t *out);

/* The target run with this id, or NULL. */
const struct store_read_run *report_run(const struct report *r, int64_t id);

/* The attempts of a cell, by window; see store_visit_window. */
NODISCARD enum err report_visit_cell(const struct report *r, size_t cell, bool whole, store_visit *visit,
                                     void *arg, struct err_detail *d);

/* Is this the attempt of a window that a figure is made from? */
bool report_counts(const struct report *r, const struct store_attempt *a);

/* OK requests a second of an attempt; NAN without a result or with a window of no length. */
double report_rate(const struct store_attempt *a);

/* Fills r->warnings, r->placements from everything else. */
void report_find_warnings(struct report *r);

#endif
