/* Pieces of a worker come one after the other, in order; those of another do not wait for them. */
#include "controller/store/store_worker.h"

#include "tests/support/store_place.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PIECES 40u

struct gate { /* a piece waits at it, as long as a long report takes */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

struct log {
    unsigned order[PIECES + 1];
    size_t count;
    struct gate *gate; /* what the first piece waits for */
};

struct numbered {
    struct log *log;
    unsigned number;
};

static void wait_at_gate(struct store *s, void *arg)
{
    const struct numbered *n = arg;
    struct gate *g = n->log->gate;
    (void)s;
    if (n->number != 0)
        return;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void on_numbered(void *arg)
{
    const struct numbered *n = arg;
    n->log->order[n->log->count++] = n->number;
}

static void read_job(struct store *s, void *arg)
{
    struct store_job job = {0};
    *(enum err *)arg = store_get_job(s, "j", &job, NULL);
    store_job_fini(&job);
}

static void open_gate(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

struct look {
    enum err found;
    struct gate *gate;
};

/* Only when the look has been answered does the long piece go on. */
static void on_look(void *arg)
{
    struct look *look = arg;
    open_gate(look->gate);
}

static void test_a_look_does_not_wait_for_long_work(void **state)
{
    struct place *p = *state;
    uv_loop_t loop;
    struct store_worker *long_work = NULL;
    struct store_worker *looks = NULL;
    place_add_job(p, "j");
    assert_int_equal(uv_loop_init(&loop), 0);
    struct store_worker_options o = {.loop = &loop, .store_path = p->path};
    assert_int_equal(store_worker_new(&o, &long_work, NULL), ERR_OK);
    o.read_only = true;
    assert_int_equal(store_worker_new(&o, &looks, NULL), ERR_OK);

    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct log log = {.gate = &gate};
    struct numbered pieces[PIECES]; /* many more than libuv has threads */
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = (struct numbered){.log = &log, .number = i};
        store_worker_do(long_work, wait_at_gate, on_numbered, &pieces[i]);
    }
    struct look look = {.found = ERR_NOT_NOW, .gate = &gate};
    store_worker_do(looks, read_job, on_look, &look);
    assert_int_equal(store_worker_pending(long_work), PIECES);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);

    assert_int_equal(look.found, ERR_OK);
    assert_int_equal(log.count, PIECES);
    for (unsigned i = 0; i < PIECES; i++)
        assert_int_equal(log.order[i], i);
    assert_int_equal(store_worker_pending(long_work), 0);
    store_worker_free(long_work);
    store_worker_free(looks);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_look_does_not_wait_for_long_work, place_set_up,
                                        place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
