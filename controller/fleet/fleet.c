#include "controller/fleet/fleet.h"

#include "common/log.h"
#include "common/mem.h"
#include "controller/fleet/fleet_agent.h"

#include <inttypes.h>

struct fleet *fleet_new(const struct fleet_options *options)
{
    struct fleet *f = mem_zalloc(1, sizeof *f);
    f->lease_ns = options->lease_ns;
    f->incarnation = options->incarnation;
    f->handlers = options->handlers;
    return f;
}

void fleet_free(struct fleet *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->agent_count; i++)
        fleet_agent_free(f->agents[i]);
    free(f->agents);
    free(f);
}

static size_t position_of(const struct fleet *f, const char *name)
{
    size_t i = 0;
    while (i < f->agent_count && strcmp(f->agents[i]->name, name) < 0)
        i++;
    return i;
}

static struct fleet_agent *find_or_add(struct fleet *f, const char *name)
{
    size_t i = position_of(f, name);
    if (i < f->agent_count && strcmp(f->agents[i]->name, name) == 0)
        return f->agents[i];
    if (f->agent_count >= LIMIT_PEERS)
        return NULL;
    f->agents = mem_realloc(f->agents, f->agent_count + 1, sizeof(struct fleet_agent *));
    memmove(&f->agents[i + 1], &f->agents[i], (f->agent_count - i) * sizeof(struct fleet_agent *));
    f->agents[i] = fleet_agent_new(name);
    f->agents[i]->controller = f->incarnation;
    f->agent_count++;
    return f->agents[i];
}

/* The job's thread may wait for them, also while it closes its hosts. */
static void answer_open(struct fleet *f, const char *job, uint32_t host, const struct fleet_open *open,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (open[i].tag == 0)
            continue;
        struct msg_event answer = fleet_refusal(open[i].tag, job, ERR_CLOSED);
        f->handlers.on_event(f->handlers.arg, job, host, &answer);
        msg_event_fini(&answer);
    }
}

static void lose(struct fleet *f, struct fleet_agent *a, const char *cause)
{
    bool had_job = a->state == FLEET_BUSY;
    bool owned = a->owned;
    char *job = a->job ? mem_strdup(a->job) : NULL;
    uint32_t host = a->host;
    struct fleet_open *open = a->open;
    size_t open_count = a->open_count;
    a->open = NULL;
    a->open_count = 0;
    log_warn("agent_lost", "agent=%s job=%s cause=\"%s\"", a->name, job ? job : "", cause);
    fleet_agent_void(a);
    fleet_agent_handle(a, FLEET_EVENT_LOSE);
    if (had_job)
        f->handlers.on_lost(f->handlers.arg, job, host, cause);
    if (owned)
        answer_open(f, job, host, open, open_count);
    free(open);
    free(job);
}

void fleet_agent_lose(struct fleet *f, struct fleet_agent *a, const char *why)
{
    char *cause = mem_printf("agent '%s' lost: %s", a->name, why);
    lose(f, a, cause);
    free(cause);
}

void fleet_agent_lapse(struct fleet *f, struct fleet_agent *a, const char *why)
{
    bool ours =
        f->paused_ns >= f->lease_ns / 2 && f->now_ns < f->paused_end_ns + f->lease_ns + FLEET_LOST_EXTRA_NS;
    if (!ours) {
        fleet_agent_lose(f, a, why);
        return;
    }
    char *cause =
        mem_printf("the controller stood still for %llu s (its process was stopped, or its machine), so "
                   "the lease that agent '%s' had from it ran out and the job was ended there",
                   (unsigned long long)(f->paused_ns / NS_PER_S), a->name);
    lose(f, a, cause);
    free(cause);
}

void fleet_note_time(struct fleet *f, uint64_t now_ns)
{
    f->now_ns = now_ns;
    if (f->due_ns == 0 || now_ns <= f->due_ns + FLEET_PAUSE_NS)
        return;
    f->paused_ns = now_ns - f->due_ns;
    f->paused_end_ns = now_ns;
    f->due_ns = 0;
    log_warn("controller_paused", "ms=%" PRIu64 " consequence=\"leases may have run out meanwhile\"",
             f->paused_ns / NS_PER_MS);
    for (size_t i = 0; i < f->agent_count; i++)
        f->agents[i]->heard_ns += f->paused_ns;
}

/* Whether what an agent holds is the job that it is believed to work for, or an earlier run of it, which ends
 * there before the present one begins. */
static bool holds_same_job(const struct fleet_agent *a, const struct msg_hello *hello)
{
    return a->job != NULL && strcmp(msg_text(hello->held_job), a->job) == 0 &&
           (a->run == 0 || hello->held_run <= a->run);
}

static bool holds_present_run(const struct fleet_agent *a, const struct msg_hello *hello)
{
    return holds_same_job(a, hello) && (a->run == 0 || hello->held_run == 0 || hello->held_run == a->run);
}

/* What a new session says about the job against what is believed here. */
static void reconcile(struct fleet *f, struct fleet_agent *a, const struct msg_hello *hello, bool restarted)
{
    const char *held = msg_text(hello->held_job);
    if (restarted) {
        if (a->state != FLEET_FREE)
            fleet_agent_lose(f, a, "the agent program was started anew, which ended everything it ran");
        fleet_agent_clear(a);
        a->last_number = 0;
        a->delivered = 0;
        a->settled = 0;
    } else if (a->state == FLEET_BUSY && !holds_present_run(a, hello) &&
               (a->opened || (held[0] != '\0' && !holds_same_job(a, hello)))) {
        fleet_agent_lapse(
            f, a, "its lease ran out before the controller was reached again, which ended the job there");
    }
    if (held[0] == '\0' || holds_same_job(a, hello))
        return;
    if (a->state == FLEET_CLOSING) /* of another job: the one that it really holds counts */
        fleet_agent_handle(a, FLEET_EVENT_LOSE);
    if (a->state == FLEET_FREE) {
        log_info("job_left_over", "agent=%s job=%s run=%" PRIu64, a->name, held, hello->held_run);
        fleet_agent_queue_close(a, held, hello->held_run);
    }
}

enum err fleet_hello(struct fleet *f, void *peer, const struct msg_hello *hello, const char *address,
                     uint64_t now_ns, struct fleet_agent **out, uint64_t *acked_event, struct err_detail *d)
{
    const char *name = msg_text(hello->name);
    fleet_note_time(f, now_ns);
    if (name[0] == '\0' || strlen(name) > LIMIT_NAME_BYTES)
        return err_set(d, ERR_INVALID, "an agent needs a name of 1 to %u bytes", LIMIT_NAME_BYTES);
    struct fleet_agent *a = find_or_add(f, name);
    if (a == NULL)
        return err_set(d, ERR_FULL, "the controller knows %u agents already, which is its limit",
                       LIMIT_PEERS);
    /* Two programs of one name would take each other's place for ever, and end each other's jobs. */
    if (a->peer != NULL && a->incarnation != hello->incarnation &&
        now_ns < a->heard_ns + 2 * f->lease_ns / FLEET_POLLS_PER_LEASE)
        return err_set(
            d, ERR_BUSY,
            "another agent called '%s' is connected%s%s: end it, or give one of them a name of its own", name,
            a->address[0] != '\0' ? " from " : "", a->address);
    if (a->peer != NULL) {
        void *old = a->peer;
        fleet_gone(f, old);
        f->handlers.drop_peer(f->handlers.arg, old, "a newer session of the same agent took its place");
    }
    bool restarted = a->incarnation != hello->incarnation;
    a->peer = peer;
    a->heard_ns = now_ns;
    mem_set_string(&a->address, address);
    mem_set_string(&a->build, msg_text(hello->build));
    reconcile(f, a, hello, restarted);
    a->incarnation = hello->incarnation;
    msg_host_fini(&a->facts);
    msg_host_copy(&a->facts, &hello->host);
    *out = a;
    *acked_event = fleet_agent_acked(a);
    log_info("agent_up", "agent=%s address=%s host=%s cpus=%u held_job=%s", a->name, address,
             msg_text(a->facts.hostname), a->facts.cpus, msg_text(hello->held_job));
    if (a->state == FLEET_FREE)
        f->handlers.on_change(f->handlers.arg);
    return ERR_OK;
}

void fleet_gone(struct fleet *f, void *peer)
{
    for (size_t i = 0; i < f->agent_count; i++) {
        struct fleet_agent *a = f->agents[i];
        if (a->peer != peer)
            continue;
        a->peer = NULL;
        void *held[] = {a->poll, a->push};
        a->poll = NULL;
        a->push = NULL;
        for (size_t k = 0; k < ARRAY_LEN(held); k++) {
            if (held[k] != NULL)
                f->handlers.refuse(f->handlers.arg, held[k], ERR_CLOSED, "the session has ended");
        }
        log_info("agent_down", "agent=%s job=%s", a->name, a->job ? a->job : "");
        return;
    }
}

void fleet_revoke(struct fleet *f, const char *name, const char *cause)
{
    size_t i = position_of(f, name);
    if (i == f->agent_count || strcmp(f->agents[i]->name, name) != 0)
        return;
    if (f->agents[i]->state != FLEET_FREE)
        lose(f, f->agents[i], cause);
}

void fleet_poll(struct fleet *f, struct fleet_agent *a, void *request, uint64_t acked_command,
                uint64_t now_ns)
{
    fleet_note_time(f, now_ns);
    if (acked_command > a->last_number) {
        f->handlers.refuse(f->handlers.arg, request, ERR_INVALID,
                           "a command is acknowledged that was never sent");
        return;
    }
    a->heard_ns = now_ns;
    size_t taken = 0;
    while (taken < a->queue_count && a->queue[taken]->number <= acked_command) {
        msg_command_fini(a->queue[taken]);
        free(a->queue[taken]);
        taken++;
    }
    if (taken > 0) {
        a->queue_count -= taken;
        memmove(a->queue, a->queue + taken, a->queue_count * sizeof(struct msg_command *));
    }
    if (a->poll != NULL) /* a second poll: the first one's answer is not awaited any more */
        fleet_agent_answer_poll(f, a, true);
    a->poll = request;
    a->poll_since_ns = now_ns;
    fleet_agent_answer_poll(f, a, false);
}

/* A connection that was closed was closed by somebody: the kernel of a machine that is up. */
static char *describe_silence(const struct fleet *f, const struct fleet_agent *a)
{
    const char *hint =
        a->peer == NULL
            ? "its connection was closed and it did not come back: most likely the agent program has ended "
              "there; see its log"
            : "its connection was never closed: see whether its host and its network are up";
    return mem_printf("nothing heard for %llu s: %s",
                      (unsigned long long)((f->now_ns - a->heard_ns) / NS_PER_S), hint);
}

static void end_silent(struct fleet *f, struct fleet_agent *a)
{
    if (a->state != FLEET_FREE) {
        char *why = describe_silence(f, a);
        fleet_agent_lose(f, a, why);
        free(why);
    }
    void *peer = a->peer;
    if (peer != NULL) {
        fleet_gone(f, peer);
        f->handlers.drop_peer(f->handlers.arg, peer, "silent for longer than its lease");
    }
}

uint64_t fleet_tick(struct fleet *f, uint64_t now_ns)
{
    fleet_note_time(f, now_ns);
    uint64_t next = now_ns + f->lease_ns;
    uint64_t hold_ns = f->lease_ns / FLEET_POLLS_PER_LEASE;
    uint64_t silence_ns = f->lease_ns + FLEET_LOST_EXTRA_NS;
    for (size_t i = 0; i < f->agent_count; i++) {
        struct fleet_agent *a = f->agents[i];
        if (a->poll != NULL && now_ns >= a->poll_since_ns + hold_ns)
            fleet_agent_answer_poll(f, a, true);
        if (a->push != NULL && now_ns >= a->push_since_ns + FLEET_PUSH_HOLD_NS)
            fleet_agent_answer_push(f, a, true);
        if ((a->peer != NULL || a->state != FLEET_FREE) && now_ns >= a->heard_ns + silence_ns)
            end_silent(f, a);
        uint64_t due[3] = {a->poll ? a->poll_since_ns + hold_ns : UINT64_MAX,
                           a->push && !a->push_is_late ? a->push_since_ns + FLEET_PUSH_HOLD_NS : UINT64_MAX,
                           a->peer || a->state != FLEET_FREE ? a->heard_ns + silence_ns : UINT64_MAX};
        for (size_t k = 0; k < ARRAY_LEN(due); k++)
            if (due[k] < next)
                next = due[k];
    }
    f->due_ns = next;
    return next;
}

/* ---- jobs ----------------------------------------------------------------------------------------- */

enum err fleet_command(struct fleet *f, struct fleet_agent *a, const char *job, const struct msg_command *c,
                       uint64_t tag)
{
    (void)f;
    if (a->state != FLEET_BUSY || strcmp(a->job, job) != 0)
        return ERR_CLOSED;
    enum err e = fleet_agent_queue(a, job, c, tag);
    if (e == ERR_OK && c->kind == MSG_COMMAND_JOB_CLOSE)
        fleet_agent_handle(a, FLEET_EVENT_CLOSE);
    return e;
}

struct msg_event fleet_refusal(uint64_t tag, const char *job, enum err code)
{
    return (struct msg_event){.answers = tag,
                              .job = mem_strdup(job),
                              .kind = MSG_EVENT_DONE,
                              .code = code,
                              .text = mem_strdup("the job does not hold this host any more")};
}

void fleet_flush(struct fleet *f)
{
    for (size_t i = 0; i < f->agent_count; i++)
        fleet_agent_answer_poll(f, f->agents[i], false);
}

void fleet_release(struct fleet *f, const char *job)
{
    for (size_t i = 0; i < f->agent_count; i++) {
        struct fleet_agent *a = f->agents[i];
        if (a->job == NULL || strcmp(a->job, job) != 0)
            continue;
        if (a->state == FLEET_BUSY)
            fleet_agent_queue_close(a, job, a->run);
        a->owned = false; /* what still comes, comes late */
    }
    fleet_flush(f);
}

size_t fleet_count(const struct fleet *f)
{
    return f->agent_count;
}

void fleet_get(const struct fleet *f, size_t i, struct fleet_info *out)
{
    must(i < f->agent_count);
    const struct fleet_agent *a = f->agents[i];
    *out = (struct fleet_info){.name = a->name,
                               .address = a->address,
                               .build = a->build,
                               .job = a->job ? a->job : "",
                               .state = a->state,
                               .connected = a->peer != NULL,
                               .heard_ns = a->heard_ns,
                               .facts = &a->facts};
}

void *fleet_agent_peer(const struct fleet_agent *a)
{
    return a->peer;
}

const char *fleet_agent_name(const struct fleet_agent *a)
{
    return a->name;
}
