#include "proto/aside.h"

#include "common/mem.h"

#include <pthread.h>

#include <stdlib.h>

struct aside {
    uv_async_t async;
    uv_thread_t thread;
    uv_mutex_t lock;
    int holders; /* the thread and the loop; the last one frees */
    bool abandoned;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static void let_go(struct aside *w)
{
    uv_mutex_lock(&w->lock);
    bool last = --w->holders == 0;
    uv_mutex_unlock(&w->lock);
    if (!last)
        return;
    uv_mutex_destroy(&w->lock);
    free(w);
}

static void run(void *arg)
{
    struct aside *w = arg;
    w->work(w->arg);
    uv_mutex_lock(&w->lock);
    if (!w->abandoned)
        uv_async_send(&w->async);
    uv_mutex_unlock(&w->lock);
    let_go(w);
}

static void on_closed(uv_handle_t *handle)
{
    struct aside *w = CONTAINER_OF((uv_async_t *)handle, struct aside, async);
    void (*done)(void *arg) = w->abandoned ? NULL : w->done;
    void *arg = w->arg;
    let_go(w);
    if (done != NULL)
        done(arg);
}

static void on_finished(uv_async_t *async)
{
    struct aside *w = CONTAINER_OF(async, struct aside, async);
    if (w->abandoned)
        return;
    uv_thread_join(&w->thread);
    uv_close((uv_handle_t *)async, on_closed);
}

struct aside *aside_start(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct aside *w = mem_zalloc(1, sizeof *w);
    w->work = work;
    w->done = done;
    w->arg = arg;
    w->holders = 2;
    must(uv_mutex_init(&w->lock) == 0);
    must(uv_async_init(loop, &w->async, on_finished) == 0);
    must(uv_thread_create(&w->thread, run, w) == 0);
    return w;
}

void aside_abandon(struct aside **aside)
{
    struct aside *w = *aside;
    *aside = NULL;
    uv_mutex_lock(&w->lock);
    w->abandoned = true;
    uv_mutex_unlock(&w->lock);
    pthread_detach(w->thread);
    uv_close((uv_handle_t *)&w->async, on_closed);
}
