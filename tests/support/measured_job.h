#ifndef TESTS_SUPPORT_MEASURED_JOB_H
#define TESTS_SUPPORT_MEASURED_JOB_H
/*
 * A job "j1" in a store of its own, measured as far as the test says: three targets, two workloads, one of
 * them with two numbers of connections, so 3 cells a target. One thread. What goes wrong fails the running
 * cmocka test.
 */
#include "controller/report/model.h"
#include "tests/support/scratch.h"

#define MEASURED_ROUNDS_MAX 8u

enum { EXPRESS, NGINX, LIGHTTPD, MEASURED_TARGETS };

struct measured {
    struct scratch scratch;
    bool local; /* the test says so before measured_add_job: a local run */
    struct store *store;
    struct experiment *experiment;
    struct design *design;
    int64_t runs[MEASURED_ROUNDS_MAX][MEASURED_TARGETS];
};

struct measured_attempt {
    uint32_t round, target, connections;
    uint32_t attempt;       /* 0 = the first */
    uint64_t ok;            /* in a window of 2 s */
    uint64_t latency_ns;    /* of each; 0 = 1 ms */
    const char *gate;       /* NULL = valid */
    double busy_cores;      /* on the server's host; 0 = next to nothing */
    double load_busy_cores; /* on the load host; 0 = not known */
};

/* For cmocka: the state is a struct measured. */
int measured_set_up(void **state);
int measured_tear_down(void **state);

/* The job, running on "sut1" and "gen1", of so many rounds; nothing is measured yet. */
void measured_add_job(struct measured *m, unsigned rounds);
void measured_end_job(struct measured *m);

/* Another agent for a role, as of now. */
void measured_put_host(struct measured *m, const char *role, const char *agent, struct msg_host facts);
struct msg_host measured_host_facts(const char *hostname, const char *cpu_model, const char *boot_id);

/* A start of the target; it failed when `error` is not NULL, at a check when `failed_check` is not. */
void measured_add_run(struct measured *m, uint32_t round, uint32_t target, const char *failed_check,
                      const char *error);
/* An attempt in that round's run of the target. */
void measured_add_attempt(struct measured *m, struct measured_attempt a);
/* Every window of these rounds, once: express far behind, nginx and lighttpd with overlapping ranges. */
void measured_add_all(struct measured *m, unsigned rounds);

uint32_t measured_window(const struct measured *m, uint32_t round, uint32_t target, uint32_t connections);

/* Its report: report_free. */
struct report *measured_report(struct measured *m);

#endif
