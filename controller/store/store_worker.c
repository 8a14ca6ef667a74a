#include "controller/store/store_worker.h"

#include "common/mem.h"

struct store_worker {
    uv_loop_t *loop;
    struct store *store;
    struct piece *first; /* those that wait, in order; no thread waits with them */
    struct piece **last;
    bool busy; /* a thread has the store handle */
    size_t pending;
};

struct piece {
    struct piece *next;
    uv_work_t work;
    struct store_worker *worker;
    void (*run)(struct store *s, void *arg);
    void (*done)(void *arg);
    void *arg;
};

enum err store_worker_new(const struct store_worker_options *options, struct store_worker **out,
                          struct err_detail *d)
{
    struct store_worker *c = mem_zalloc(1, sizeof(*c));
    c->loop = options->loop;
    enum err e = store_open(options->store_path, options->read_only, &c->store, d);
    if (e != ERR_OK) {
        free(c);
        return e;
    }
    c->last = &c->first;
    *out = c;
    return ERR_OK;
}

void store_worker_free(struct store_worker *c)
{
    if (c == NULL)
        return;
    must(c->pending == 0);
    store_close(c->store);
    free(c);
}

static void on_worker(uv_work_t *work)
{
    struct piece *p = CONTAINER_OF(work, struct piece, work);
    p->run(p->worker->store, p->arg);
}

static void start_next(struct store_worker *c);

static void on_done(uv_work_t *work, int status)
{
    struct piece *p = CONTAINER_OF(work, struct piece, work);
    struct store_worker *c = p->worker;
    must(status == 0); /* nothing is ever cancelled */
    c->pending--;
    c->busy = false;
    start_next(c); /* before `done`, which may free the worker once nothing is pending */
    p->done(p->arg);
    free(p);
}

static void start_next(struct store_worker *c)
{
    struct piece *p = c->first;
    if (p == NULL || c->busy)
        return;
    c->first = p->next;
    if (c->first == NULL)
        c->last = &c->first;
    c->busy = true;
    must(uv_queue_work(c->loop, &p->work, on_worker, on_done) == 0);
}

void store_worker_do(struct store_worker *c, void (*work)(struct store *s, void *arg),
                     void (*done)(void *arg), void *arg)
{
    struct piece *p = mem_zalloc(1, sizeof(*p));
    *p = (struct piece){.worker = c, .run = work, .done = done, .arg = arg};
    *c->last = p;
    c->last = &p->next;
    c->pending++;
    start_next(c);
}

size_t store_worker_pending(const struct store_worker *c)
{
    return c->pending;
}
