#include "agent/run.h"

#include "agent/agent.h"
#include "agent/enroll.h"
#include "agent/host.h"
#include "agent/process/process.h"
#include "agent/state_dir.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define END_TIMEOUT_MS 20000u /* then the supervisor has to clear what we could not */

struct run {
    uv_loop_t loop;
    uv_signal_t signals[2];
    uv_poll_t leash;
    bool leash_open;
    uv_timer_t end_timer;
    struct agent *agent;
    bool ending;
    const char *identity_dir; /* NULL: none is needed */
    enum err result;
    struct err_detail detail;
};

struct parts { /* what one agent is made of */
    char *controller;
    char *name;
    struct identity identity;
    bool has_identity;
    struct msg_host host;
    int lock_fd;
};

/* ---- the end -------------------------------------------------------------------------------------- */

static void on_agent_closed(void *arg)
{
    struct run *r = arg;
    for (size_t i = 0; i < ARRAY_LEN(r->signals); i++)
        uv_close((uv_handle_t *)&r->signals[i], NULL);
    uv_close((uv_handle_t *)&r->end_timer, NULL);
    if (r->leash_open)
        uv_close((uv_handle_t *)&r->leash, NULL);
}

static void on_end_timeout(uv_timer_t *timer)
{
    (void)timer;
    log_error("end_timeout", "after_ms=%u consequence=\"the job's supervisor clears what is left\"",
              END_TIMEOUT_MS);
    _exit(3);
}

static void end(struct run *r, const char *why)
{
    if (r->ending)
        return;
    r->ending = true;
    log_info("ending", "why=\"%s\" job=%s", why, agent_job(r->agent));
    uv_timer_start(&r->end_timer, on_end_timeout, END_TIMEOUT_MS, 0);
    agent_close(&r->agent, on_agent_closed, r);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    end(handle->data, signum == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void on_final(void *arg, enum err e, const char *why)
{
    struct run *r = arg;
    r->result = err_set(&r->detail, e, "the controller refuses this agent: %s", why);
    if (r->identity_dir != NULL)
        r->result = enroll_advise(&r->detail, r->result, r->identity_dir);
    end(r, why);
}

/* ---- the leash: standard input, held by who started us -------------------------------------------- */

static void on_leash(uv_poll_t *handle, int status, int events)
{
    struct run *r = handle->data;
    (void)events;
    char skipped[256];
    ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, skipped, sizeof skipped);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    uv_poll_stop(handle);
    end(r, "standard input has ended (--leash)");
}

static enum err leash_start(struct run *r, struct err_detail *d)
{
    if (uv_poll_init(&r->loop, &r->leash, STDIN_FILENO) != 0)
        return err_set(d, ERR_INVALID, "--leash needs a pipe, a socket or a terminal on standard input");
    r->leash_open = true;
    r->leash.data = r;
    must(uv_poll_start(&r->leash, UV_READABLE | UV_DISCONNECT, on_leash) == 0);
    return ERR_OK;
}

/* ---- parts ---------------------------------------------------------------------------------------- */

static enum err parts_name(const struct invocation *o, struct parts *p, struct err_detail *d)
{
    if (!p->has_identity) {
        p->name = o->name != NULL ? mem_strdup(o->name) : enroll_default_name();
        return ERR_OK;
    }
    struct identity_facts facts;
    enum err e = identity_check_certificate(p->identity.ca_pem, p->identity.cert_pem, &facts, d);
    if (e != ERR_OK)
        return enroll_advise(d, err_prefix(d, e, "%s/cert.pem", o->identity_dir), o->identity_dir);
    if (o->name != NULL && strcmp(o->name, facts.name) != 0)
        return err_set(d, ERR_INVALID,
                       "--name %s: the certificate in %s says %s, and the controller goes by that", o->name,
                       o->identity_dir, facts.name);
    p->name = mem_strdup(facts.name);
    return ERR_OK;
}

static enum err parts_load(const struct invocation *o, struct parts *p, struct err_detail *d)
{
    enum err e;
    *p = (struct parts){.lock_fd = -1};
    if (access(o->load_program, X_OK) < 0)
        return err_set(d, ERR_NOT_FOUND,
                       "cannot run %s: %s. Say where splitbench-load is with --load-program", o->load_program,
                       strerror(errno));
    if (o->controller != NULL)
        p->controller = mem_strdup(o->controller);
    else if ((e = enroll_read_controller(o->identity_dir, &p->controller, d)) != ERR_OK)
        return e;
    if (strncmp(p->controller, "ipc://", 6) != 0) {
        if ((e = identity_load(o->identity_dir, &p->identity, d)) != ERR_OK)
            return e;
        p->has_identity = true;
    }
    if ((e = parts_name(o, p, d)) != ERR_OK || (e = host_read("", &p->host, d)) != ERR_OK)
        return e;
    for (size_t i = 0; i < o->labels.count; i++) {
        if ((e = host_add_label(&p->host, o->labels.items[i], d)) != ERR_OK)
            return e;
    }
    mem_set_string(&p->host.address, o->address != NULL ? o->address : "");
    return state_dir_take(o->state_dir, &p->lock_fd, d);
}

static void parts_fini(struct parts *p)
{
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    msg_host_fini(&p->host);
    if (p->has_identity)
        identity_fini(&p->identity);
    free(p->name);
    free(p->controller);
}

/* ---- the run -------------------------------------------------------------------------------------- */

static enum err run_start(struct run *r, const struct invocation *o, const struct parts *p,
                          struct err_detail *d)
{
    static const int signums[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < ARRAY_LEN(signums); i++) {
        must(uv_signal_init(&r->loop, &r->signals[i]) == 0);
        r->signals[i].data = r;
        must(uv_signal_start(&r->signals[i], on_signal, signums[i]) == 0);
    }
    must(uv_timer_init(&r->loop, &r->end_timer) == 0);
    enum err e;
    if (o->leash && (e = leash_start(r, d)) != ERR_OK)
        return e;
    e = agent_new(&(struct agent_options){.loop = &r->loop,
                                          .address = p->controller,
                                          .identity = p->has_identity ? &p->identity : NULL,
                                          .name = p->name,
                                          .host = &p->host,
                                          .state_dir = o->state_dir,
                                          .load_program = o->load_program,
                                          .on_final = on_final,
                                          .arg = r},
                  &r->agent, d);
    if (e == ERR_OK)
        log_info("started", "name=%s controller=%s state=%s cpus=%s build=%s", p->name, p->controller,
                 o->state_dir, p->host.cpu_list, SPLITBENCH_BUILD);
    return e;
}

enum err run_agent(const struct invocation *o, struct err_detail *d)
{
    if (o->verbose)
        log_set_level(LOG_DEBUG);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(), not the end of this program */
    signal(SIGXFSZ, SIG_IGN);
    struct parts parts;
    struct run r = {.result = ERR_OK};
    enum err e = parts_load(o, &parts, d);
    if (e != ERR_OK)
        goto out;
    process_clean_stale();
    int no_loop = uv_loop_init(&r.loop);
    if (no_loop != 0) {
        e = err_set(d, err_from_errno(-no_loop), "cannot make an event loop: %s", uv_strerror(no_loop));
        goto out;
    }
    r.identity_dir = parts.has_identity ? o->identity_dir : NULL;
    e = run_start(&r, o, &parts, d);
    if (e != ERR_OK)
        on_agent_closed(&r);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    must(uv_loop_close(&r.loop) == 0);
    if (e == ERR_OK && r.result != ERR_OK) {
        e = r.result;
        *d = r.detail;
    }
out:
    parts_fini(&parts);
    return e;
}
