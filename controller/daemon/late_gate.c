#include "controller/daemon/late_gate.h"

#include "common/log.h"
#include "common/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct refused {
    struct refused *next;
    char *agent;
    uint64_t count;   /* since the start */
    uint64_t unsaved; /* of them, not yet given to the store */
};

struct late_gate {
    struct store *store;
    struct store_worker *worker;
    struct refused *refused; /* by agent: no more than were ever enrolled */
    /* The write under way. */
    bool saving;
    struct refused *saved;
    uint64_t saved_count;
    enum err err;
    struct err_detail detail;
};

struct late_gate *late_gate_new(struct store *store, struct store_worker *worker)
{
    struct late_gate *g = mem_zalloc(1, sizeof *g);
    g->store = store;
    g->worker = worker;
    return g;
}

void late_gate_free(struct late_gate *g)
{
    if (g == NULL)
        return;
    must(!g->saving);
    while (g->refused != NULL) {
        struct refused *r = g->refused;
        g->refused = r->next;
        free(r->agent);
        free(r);
    }
    free(g);
}

static struct refused *of_agent(struct late_gate *g, const char *agent)
{
    struct refused *r = g->refused;
    while (r != NULL && strcmp(r->agent, agent) != 0)
        r = r->next;
    if (r == NULL) {
        r = mem_zalloc(1, sizeof *r);
        r->agent = mem_strdup(agent);
        r->next = g->refused;
        g->refused = r;
    }
    return r;
}

static void save_next(struct late_gate *g);

static void work_save(struct store *store, void *arg)
{
    struct late_gate *g = arg;
    g->err = store_count_refused_late(store, g->saved->agent, g->saved_count, &g->detail);
}

static void on_saved(void *arg)
{
    struct late_gate *g = arg;
    g->saving = false;
    if (g->err == ERR_OK) {
        save_next(g);
        return;
    }
    g->saved->unsaved += g->saved_count; /* goes with the next that comes */
    log_error("late_refused", "agent=%s why=\"%s\"", g->saved->agent, g->detail.text);
}

static void save_next(struct late_gate *g)
{
    struct refused *r = g->refused;
    while (r != NULL && r->unsaved == 0)
        r = r->next;
    if (g->saving || r == NULL)
        return;
    g->saving = true;
    g->saved = r;
    g->saved_count = r->unsaved;
    r->unsaved = 0;
    store_worker_do(g->worker, work_save, on_saved, g);
}

/* The 1st, the 10th, the 100th, ...: a flood of results is no flood of lines. */
static bool is_told(uint64_t count)
{
    while (count % 10 == 0)
        count /= 10;
    return count == 1;
}

bool late_gate_admits(struct late_gate *g, const char *agent, const struct msg_event *e)
{
    struct err_detail d;
    enum err r = store_admit_late_event(g->store, agent, msg_text(e->job), &d);
    if (r != ERR_DENIED && r != ERR_FULL)
        return true; /* what cannot be known now is for the store to say when it is to be kept */
    struct refused *refused = of_agent(g, agent);
    refused->count++;
    refused->unsaved++;
    if (is_told(refused->count))
        log_warn("late_refused", "agent=%s count=%" PRIu64 " why=\"%s\"", agent, refused->count, d.text);
    save_next(g);
    return false;
}
