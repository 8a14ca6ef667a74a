#include "controller/clerk.h"

#include "common/mem.h"

#include <pthread.h>

struct clerk {
    uv_loop_t *loop;
    struct store *store;
    pthread_mutex_t lock; /* the store handle belongs to one worker at a time */
    size_t pending;
};

struct piece {
    uv_work_t work;
    struct clerk *clerk;
    void (*run)(struct store *s, void *arg);
    void (*done)(void *arg);
    void *arg;
};

enum err clerk_new(const struct clerk_options *options, struct clerk **out, struct err_detail *d)
{
    struct clerk *c = mem_zalloc(1, sizeof(*c));
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

void clerk_free(struct clerk *c)
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
    pthread_mutex_lock(&p->clerk->lock);
    p->run(p->clerk->store, p->arg);
    pthread_mutex_unlock(&p->clerk->lock);
}

static void on_done(uv_work_t *work, int status)
{
    struct piece *p = CONTAINER_OF(work, struct piece, work);
    must(status == 0); /* nothing is ever cancelled */
    p->clerk->pending--;
    p->done(p->arg);
    free(p);
}

void clerk_do(struct clerk *c, void (*work)(struct store *s, void *arg), void (*done)(void *arg), void *arg)
{
    struct piece *p = mem_zalloc(1, sizeof(*p));
    p->clerk = c;
    p->run = work;
    p->done = done;
    p->arg = arg;
    c->pending++;
    must(uv_queue_work(c->loop, &p->work, on_worker, on_done) == 0);
}

size_t clerk_pending(const struct clerk *c)
{
    return c->pending;
}
