#include "controller/store/store_worker.h"

#include "common/mem.h"

#include <pthread.h>

struct store_worker {
    uv_loop_t *loop;
    struct store *store;
    pthread_mutex_t lock; /* the store handle belongs to one worker at a time */
    size_t pending;
};

struct piece {
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
    enum err e = store_open(options->store_path, false, &c->store, d);
    if (e != ERR_OK) {
        free(c);
        return e;
    }
    must(pthread_mutex_init(&c->lock, NULL) == 0);
    *out = c;
    return ERR_OK;
}

void store_worker_free(struct store_worker *c)
{
    if (c == NULL)
        return;
    must(c->pending == 0);
    store_close(c->store);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

static void on_worker(uv_work_t *work)
{
    struct piece *p = CONTAINER_OF(work, struct piece, work);
    pthread_mutex_lock(&p->worker->lock);
    p->run(p->worker->store, p->arg);
    pthread_mutex_unlock(&p->worker->lock);
}

static void on_done(uv_work_t *work, int status)
{
    struct piece *p = CONTAINER_OF(work, struct piece, work);
    must(status == 0); /* nothing is ever cancelled */
    p->worker->pending--;
    p->done(p->arg);
    free(p);
}

void store_worker_do(struct store_worker *c, void (*work)(struct store *s, void *arg),
                     void (*done)(void *arg), void *arg)
{
    struct piece *p = mem_zalloc(1, sizeof(*p));
    p->worker = c;
    p->run = work;
    p->done = done;
    p->arg = arg;
    c->pending++;
    must(uv_queue_work(c->loop, &p->work, on_worker, on_done) == 0);
}

size_t store_worker_pending(const struct store_worker *c)
{
    return c->pending;
}
