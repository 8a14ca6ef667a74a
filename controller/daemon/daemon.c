#include "controller/daemon/daemon.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/sha256.h"
#include "controller/daemon/server.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <uv.h>

#define STOP_CAUSE "the controller stopped while the job ran"

struct daemon {
    const struct daemon_options *o;
    uv_loop_t loop;
    struct server *server;
    struct identity identity;
    char *store_path;
    int lock_fd;
    uv_signal_t term, interrupt;
    uv_poll_t leash;
    bool leashed; /* `leash` is a live handle */
    bool stopping;
};

char *daemon_store_path(const char *state_dir)
{
    return mem_printf("%s/store.db", state_dir);
}

/* ---- the state directory -------------------------------------------------------------------------- */

static enum err lock_state(struct daemon *m, struct err_detail *d)
{
    const char *dir = m->o->state_dir;
    enum err e = file_make_dir(dir, 0700, d);
    if (e != ERR_OK)
        return e;
    char *path = mem_printf("%s/controller.lock", dir);
    e = file_lock(path, &m->lock_fd, d);
    if (e == ERR_BUSY)
        err_set(d, e, "another controller has the state directory %s; stop it or name another one", dir);
    free(path);
    return e;
}

/* Jobs that were running when an earlier controller ended. */
static enum err fail_interrupted(const struct daemon *m, struct err_detail *d)
{
    struct store *s = NULL;
    size_t count = 0;
    enum err e = store_open(m->store_path, false, &s, d);
    if (e == ERR_OK)
        e = store_fail_interrupted(s, STOP_CAUSE, &count, d);
    if (e == ERR_OK && count > 0)
        log_warn("jobs_interrupted", "count=%zu", count);
    store_close(s);
    return e;
}

/* ---- the end -------------------------------------------------------------------------------------- */

static void on_server_closed(void *arg)
{
    struct daemon *m = arg;
    uv_close((uv_handle_t *)&m->term, NULL);
    uv_close((uv_handle_t *)&m->interrupt, NULL);
    if (m->leashed)
        uv_close((uv_handle_t *)&m->leash, NULL);
}

static void stop(struct daemon *m, const char *why)
{
    if (m->stopping)
        return;
    m->stopping = true;
    log_info("stopping", "why=\"%s\"", why);
    server_close(&m->server, STOP_CAUSE, on_server_closed, m);
}

static void on_signal(uv_signal_t *signal, int number)
{
    stop(signal->data, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void on_leash(uv_poll_t *poll, int status, int events)
{
    char byte[256];
    (void)events;
    ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, byte, sizeof byte);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return; /* what is said on it does not matter */
    (void)uv_poll_stop(poll);
    stop(poll->data, "its parent has ended");
}

/* ---- the start ------------------------------------------------------------------------------------ */

static void watch_for_the_end(struct daemon *m)
{
    must(uv_signal_init(&m->loop, &m->term) == 0);
    must(uv_signal_init(&m->loop, &m->interrupt) == 0);
    m->term.data = m->interrupt.data = m;
    must(uv_signal_start(&m->term, on_signal, SIGTERM) == 0);
    must(uv_signal_start(&m->interrupt, on_signal, SIGINT) == 0);
}

static enum err watch_leash(struct daemon *m, struct err_detail *d)
{
    int r = uv_poll_init(&m->loop, &m->leash, STDIN_FILENO);
    m->leashed = r == 0;
    m->leash.data = m;
    if (r == 0)
        r = uv_poll_start(&m->leash, UV_READABLE | UV_DISCONNECT, on_leash);
    return r == 0 ? ERR_OK
                  : err_set(d, ERR_INVALID, "a leash needs a pipe as standard input: %s", uv_strerror(r));
}

static void tell_ready(const struct daemon *m)
{
    const char **bound = mem_zalloc(m->o->address_count + 1, sizeof *bound);
    for (size_t i = 0; i < m->o->address_count; i++) {
        bound[i] = server_address(m->server, i);
        log_info("listening", "address=%s", bound[i]);
    }
    if (m->o->on_ready != NULL)
        m->o->on_ready(m->o->arg, bound, m->o->address_count);
    free(bound);
}

static enum err serve(struct daemon *m, struct err_detail *d)
{
    const struct daemon_options *o = m->o;
    must(o->lease_ns >= DAEMON_LEASE_MIN_NS && o->lease_ns <= DAEMON_LEASE_MAX_NS);
    enum err e = fail_interrupted(m, d);
    if (e != ERR_OK)
        return e;
    e = server_new(&(struct server_options){.loop = &m->loop,
                                            .addresses = o->addresses,
                                            .address_count = o->address_count,
                                            .state_dir = o->state_dir,
                                            .store_path = m->store_path,
                                            .identity_dir = o->identity_dir,
                                            .identity = o->identity_dir ? &m->identity : NULL,
                                            .lease_ns = o->lease_ns},
                   &m->server, d);
    if (e != ERR_OK)
        return e;
    watch_for_the_end(m);
    if (o->leash)
        e = watch_leash(m, d);
    if (e == ERR_OK)
        e = server_adopt_jobs(m->server, d);
    if (e == ERR_OK)
        tell_ready(m);
    else
        stop(m, "it could not start");
    (void)uv_run(&m->loop, UV_RUN_DEFAULT);
    return e;
}

enum err daemon_run(const struct daemon_options *options, struct err_detail *d)
{
    struct daemon m = {.o = options, .lock_fd = -1, .store_path = daemon_store_path(options->state_dir)};
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe and a full file are error values, not a death */
    (void)signal(SIGXFSZ, SIG_IGN);
    enum err e = sha256_check(d);
    if (e == ERR_OK)
        e = lock_state(&m, d);
    int no_loop = e == ERR_OK ? uv_loop_init(&m.loop) : 0;
    if (no_loop != 0)
        e = err_set(d, err_from_errno(-no_loop), "cannot make an event loop: %s", uv_strerror(no_loop));
    bool looped = e == ERR_OK;
    if (e == ERR_OK && options->identity_dir != NULL)
        e = identity_load(options->identity_dir, &m.identity, d);
    if (e == ERR_OK)
        e = serve(&m, d);
    if (looped)
        must(uv_loop_close(&m.loop) == 0);
    identity_fini(&m.identity);
    if (m.lock_fd >= 0)
        close(m.lock_fd);
    free(m.store_path);
    return e;
}
