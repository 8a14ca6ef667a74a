#include "proto/link/nng_faults/side_thread.h"

#include "common/mem.h"

#include <pthread.h>

#include <stdlib.h>

struct side_thread {
    uv_async_t async;
    uv_timer_t timer;
    uv_thread_t thread;
    uv_mutex_t lock;
    int holders; /* the thread and the loop; the last one frees */
    bool finished;
    bool abandoned;
    void (*work)(void *arg);
    void (*done)(void *arg, bool abandoned);
    void *arg;
};

static void let_go(struct side_thread *w)
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
    struct side_thread *w = arg;
    w->work(w->arg);
    uv_mutex_lock(&w->lock);
    w->finished = true;
    if (!w->abandoned)
        uv_async_send(&w->async);
    uv_mutex_unlock(&w->lock);
    let_go(w);
}

static void on_async_closed(uv_handle_t *handle)
{
    struct side_thread *w = handle->data;
    void (*done)(void *arg, bool abandoned) = w->done;
    void *arg = w->arg;
    bool abandoned = w->abandoned;
    let_go(w);
    done(arg, abandoned);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct side_thread *w = handle->data;
    uv_close((uv_handle_t *)&w->async, on_async_closed);
}

static void on_finished(uv_async_t *async)
{
    struct side_thread *w = async->data;
    if (w->abandoned)
        return;
    uv_thread_join(&w->thread);
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

static void on_limit(uv_timer_t *timer)
{
    struct side_thread *w = timer->data;
    uv_mutex_lock(&w->lock);
    w->abandoned = !w->finished; /* else on_finished is on its way */
    uv_mutex_unlock(&w->lock);
    if (!w->abandoned)
        return;
    pthread_detach(w->thread);
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

struct side_thread *side_thread_start(uv_loop_t *loop, void (*work)(void *arg),
                                      void (*done)(void *arg, bool abandoned), void *arg)
{
    struct side_thread *w = mem_zalloc(1, sizeof *w);
    w->work = work;
    w->done = done;
    w->arg = arg;
    w->holders = 2;
    must(uv_mutex_init(&w->lock) == 0);
    must(uv_async_init(loop, &w->async, on_finished) == 0);
    must(uv_timer_init(loop, &w->timer) == 0);
    w->async.data = w->timer.data = w;
    must(uv_thread_create(&w->thread, run, w) == 0);
    return w;
}

void side_thread_limit(struct side_thread *w, unsigned limit_ms)
{
    uv_timer_start(&w->timer, on_limit, limit_ms, 0);
}
