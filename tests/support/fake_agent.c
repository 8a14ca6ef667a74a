#include "tests/support/fake_agent.h"

#include "common/clock.h"
#include "common/hist.h"
#include "common/mem.h"
#include "common/parse.h"

#define OUTBOX_MAX 256u
#define SERVERS    16u

struct fake_agent {
    struct fake_world *world;
    char *name;
    char *boot_id;
    char *label;
    uint64_t incarnation;
    bool connected;
    int *peer; /* its address is the session; never freed before the world */
    struct fleet_agent *handle;
    char *held_job;
    uint64_t taken; /* commands */
    bool poll_open, push_open;
    struct msg_event *outbox[OUTBOX_MAX]; /* not acknowledged; owned */
    size_t outbox_count;
    uint64_t last_event;
    uint32_t server; /* number of the process that is up, 0 = none */
    uint64_t load;   /* command number of the LOAD that runs, 0 = none */
};

/* Something that happens later: to the agent it belongs to, if that still is the same incarnation. */
struct fake_later {
    struct fake_later *next;
    uint64_t due_ns;
    struct fake_agent *agent;
    uint64_t incarnation;
    void (*run)(struct fake_agent *a, uint64_t number, void *data);
    uint64_t number;
    void *data;                  /* owned */
    struct msg_command *command; /* owned; then it is this that happens */
};

struct fake_request {
    struct fake_agent *agent;
    int *peer;
    bool is_poll;
};

struct fake_world {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct fleet *fleet;
    struct fake_faults faults;
    uint64_t random;
    struct fake_agent *agents[FAKE_AGENTS_MAX];
    size_t agent_count;
    struct fake_later *later;
    int **peers;
    size_t peer_count;
    unsigned starts;
    unsigned shared;
    cpu_set_t server_cpus[SERVERS]; /* by port modulo SERVERS; empty = not pinned */
    uint32_t loaded_port;           /* of the load before */
    uint64_t load_end_ns, gap_ns;
    bool stopped;
};

/* splitmix64: the whole run follows from the seed, but for the job thread's timing. */
static uint64_t draw(struct fake_world *w)
{
    uint64_t z = w->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool chance(struct fake_world *w, unsigned per_thousand)
{
    return draw(w) % 1000 < per_thousand;
}

/* ---- time ---------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);
static void take_command(struct fake_agent *a, const struct msg_command *c);

static void arm(struct fake_world *w)
{
    if (w->stopped)
        return;
    uint64_t now = clock_now_ns(), next = now + 5 * NS_PER_MS;
    for (const struct fake_later *l = w->later; l != NULL; l = l->next) {
        if (l->due_ns < next)
            next = l->due_ns;
    }
    uv_update_time(w->loop);
    must(uv_timer_start(&w->timer, on_timer, next > now ? (next - now) / NS_PER_MS : 0, 0) == 0);
}

static struct fake_later *later(struct fake_agent *a, uint64_t after_ms,
                                void (*run)(struct fake_agent *, uint64_t, void *), uint64_t number,
                                void *data)
{
    struct fake_later *l = mem_zalloc(1, sizeof(*l));
    l->due_ns = clock_now_ns() + after_ms * NS_PER_MS;
    l->agent = a;
    l->incarnation = a->incarnation;
    l->run = run;
    l->number = number;
    l->data = data;
    struct fake_later **at = &a->world->later;
    while (*at != NULL && (*at)->due_ns <= l->due_ns)
        at = &(*at)->next;
    l->next = *at;
    *at = l;
    arm(a->world);
    return l;
}

static void later_free(struct fake_later *l)
{
    if (l->command != NULL) {
        msg_command_fini(l->command);
        free(l->command);
    }
    free(l->data);
    free(l);
}

static void on_timer(uv_timer_t *timer)
{
    struct fake_world *w = timer->data;
    uint64_t now = clock_now_ns();
    while (w->later != NULL && w->later->due_ns <= now) {
        struct fake_later *l = w->later;
        w->later = l->next;
        if (l->incarnation == l->agent->incarnation && l->command != NULL)
            take_command(l->agent, l->command);
        else if (l->incarnation == l->agent->incarnation)
            l->run(l->agent, l->number, l->data);
        later_free(l);
    }
    fleet_tick(w->fleet, now);
    arm(w);
}

/* ---- the link ------------------------------------------------------------------------------------ */

static void send_poll(struct fake_agent *a)
{
    if (!a->connected || a->poll_open)
        return;
    struct fake_request *r = mem_zalloc(1, sizeof(*r));
    *r = (struct fake_request){.agent = a, .peer = a->peer, .is_poll = true};
    a->poll_open = true;
    fleet_poll(a->world->fleet, a->handle, r, a->taken, clock_now_ns());
}

static void send_push(struct fake_agent *a)
{
    struct msg_event items[OUTBOX_MAX];
    if (!a->connected || a->push_open || a->outbox_count == 0)
        return;
    for (size_t i = 0; i < a->outbox_count; i++)
        items[i] = *a->outbox[i];
    struct msg_push push = {.incarnation = a->incarnation, .items = items, .count = a->outbox_count};
    struct fake_request *r = mem_zalloc(1, sizeof(*r));
    *r = (struct fake_request){.agent = a, .peer = a->peer};
    a->push_open = true;
    fleet_push(a->world->fleet, a->handle, r, &push, clock_now_ns());
}

static void come_back(struct fake_agent *a, uint64_t number, void *data);

/* The connection ends; the agent notices at once and dials again after a while. */
static void cut(struct fake_agent *a, uint64_t away_ms)
{
    if (!a->connected)
        return;
    a->connected = false;
    a->poll_open = a->push_open = false;
    fleet_gone(a->world->fleet, a->peer);
    if (away_ms != UINT64_MAX)
        later(a, away_ms, come_back, 0, NULL);
}

static void come_back(struct fake_agent *a, uint64_t number, void *data)
{
    struct fake_world *w = a->world;
    uint64_t acked = 0;
    (void)number;
    (void)data;
    if (a->connected || w->stopped)
        return;
    w->peers = mem_realloc(w->peers, w->peer_count + 1, sizeof(*w->peers));
    a->peer = w->peers[w->peer_count++] = mem_zalloc(1, sizeof(int));
    char cpus[] = "0-3";
    struct msg_hello hello = {.role = MSG_ROLE_AGENT,
                              .name = a->name,
                              .incarnation = a->incarnation,
                              .held_job = a->held_job,
                              .host = {.hostname = a->name,
                                       .boot_id = a->boot_id,
                                       .cpus = 4,
                                       .cpu_list = cpus,
                                       .labels = {.items = &a->label, .count = a->label ? 1 : 0}}};
    a->connected = true;
    must(fleet_hello(w->fleet, a->peer, &hello, "10.0.0.9", clock_now_ns(), &a->handle, &acked, NULL) ==
         ERR_OK);
    send_poll(a);
    send_push(a);
}

static void clear_outbox(struct fake_agent *a, uint64_t upto)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->outbox_count; i++) {
        if (a->outbox[i]->number <= upto) {
            msg_event_fini(a->outbox[i]);
            free(a->outbox[i]);
        } else {
            a->outbox[kept++] = a->outbox[i];
        }
    }
    a->outbox_count = kept;
}

/* SIGKILL and a new program: nothing of the old one lives, nothing of it is remembered. */
static void restart(struct fake_agent *a)
{
    cut(a, UINT64_MAX);
    a->incarnation++;
    a->taken = 0;
    a->last_event = 0;
    a->server = 0;
    a->load = 0;
    mem_set_string(&a->held_job, "");
    clear_outbox(a, UINT64_MAX);
    later(a, 1, come_back, 0, NULL);
}

static void emit(struct fake_agent *a, struct msg_event *e, uint64_t answers, enum msg_event_kind kind)
{
    struct msg_event *copy = mem_zalloc(1, sizeof(*copy));
    must(a->outbox_count < OUTBOX_MAX);
    e->number = ++a->last_event;
    e->answers = answers;
    e->kind = kind;
    e->job = a->held_job;
    msg_event_copy(copy, e);
    a->outbox[a->outbox_count++] = copy;
    send_push(a);
}

/* ---- what a host does ---------------------------------------------------------------------------- */

static void emit_done(struct fake_agent *a, uint64_t answers, enum err code, const char *text)
{
    struct msg_event e = {.code = code, .text = (char *)(uintptr_t)text};
    emit(a, &e, answers, MSG_EVENT_DONE);
}

static void emit_progress(struct fake_agent *a, uint64_t number, enum msg_progress_kind kind)
{
    struct msg_event e = {.u.progress = {.kind = kind, .at_ns = clock_now_ns(), .ok = 10}};
    emit(a, &e, number, MSG_EVENT_PROGRESS);
}

static void end_load(struct fake_agent *a, uint64_t number, void *data)
{
    struct msg_load *l = data;
    if (a->load != number)
        return;
    emit_progress(a, number, MSG_PROGRESS_WINDOW_END);
    a->load = 0;
    a->world->load_end_ns = clock_now_ns();
    if (chance(a->world, a->world->faults.load_fail)) {
        emit_done(a, number, ERR_FAILED, "the generator was killed");
        return;
    }
    uint64_t now = clock_now_ns();
    struct msg_event e = {0};
    struct msg_loaded *r = &e.u.loaded;
    r->window_start_ns = now - l->duration_ns;
    r->window_end_ns = now;
    r->window = (struct msg_accounts){.scheduled = 100, .ok = 98, .in_flight = 2};
    if (chance(a->world, a->world->faults.unbalanced))
        r->window.scheduled++;
    struct hist *h = hist_new();
    struct buf text;
    for (uint64_t i = 0; i < r->window.ok; i++)
        hist_record(h, (i + 1) * NS_PER_US);
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    must(hist_encode(h, &text) == ERR_OK);
    hist_free(h);
    r->latency_hist = (struct msg_bytes){(uint8_t *)text.data, text.len};
    emit(a, &e, number, MSG_EVENT_LOADED);
    buf_fini(&text);
}

static void start_window(struct fake_agent *a, uint64_t number, void *data)
{
    const struct msg_load *l = data;
    if (a->load != number)
        return;
    emit_progress(a, number, MSG_PROGRESS_WINDOW_START);
    later(a, l->duration_ns / NS_PER_MS, end_load, number, mem_dup(l, sizeof(*l)));
}

static void note_load(struct fake_world *w, const struct msg_load *l)
{
    cpu_set_t own;
    cpu_set_t both;
    uint64_t gap_ns = clock_now_ns() - w->load_end_ns;
    if (parse_cpus(msg_text(l->cpus), &own, "", NULL) == ERR_OK) {
        CPU_AND(&both, &own, &w->server_cpus[l->port % SERVERS]);
        w->shared += CPU_COUNT(&both) > 0;
    }
    if (w->loaded_port == l->port && gap_ns < w->gap_ns)
        w->gap_ns = gap_ns;
    w->loaded_port = l->port;
}

static void begin_load(struct fake_agent *a, const struct msg_command *c)
{
    const struct msg_load *l = &c->u.load;
    if (chance(a->world, a->world->faults.refused)) {
        emit_done(a, c->number, ERR_FAILED, "no connection could be opened: refused");
        return;
    }
    note_load(a->world, l);
    a->load = c->number;
    emit_progress(a, c->number, MSG_PROGRESS_WARMUP_START);
    later(a, l->warmup_ns / NS_PER_MS, start_window, c->number, mem_dup(l, sizeof(*l)));
}

static void server_dies(struct fake_agent *a, uint64_t number, void *data)
{
    (void)data;
    if (a->server != number)
        return;
    struct msg_event e = {
        .u.exited = {
            .proc = a->server, .status = -1, .signal = 11, .log_tail = (char *)(uintptr_t) "segfault"}};
    a->server = 0;
    emit(a, &e, 0, MSG_EVENT_EXITED);
}

static void start(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.started = {.proc = c->u.start.proc, .pid = 4711, .startup_ns = 1000}};
    if (c->u.start.ready != MSG_READY_EXIT) {
        a->server = c->u.start.proc;
        a->world->starts++;
        cpu_set_t *cpus = &a->world->server_cpus[c->u.start.ready_port % SERVERS];
        if (parse_cpus(msg_text(c->u.start.cpus), cpus, "", NULL) != ERR_OK)
            CPU_ZERO(cpus);
        if (chance(a->world, a->world->faults.server_die))
            later(a, draw(a->world) % 40, server_dies, a->server, NULL);
    }
    emit(a, &e, c->number, MSG_EVENT_STARTED);
}

static void stop(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.exited = {.proc = c->u.stop.proc, .asked = true}};
    if (a->server == c->u.stop.proc)
        a->server = 0;
    emit(a, &e, c->number, MSG_EVENT_EXITED);
}

static void sample(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.sampled = {.at_ns = clock_now_ns(), .busy_ns = clock_now_ns()}};
    e.u.sampled.proc_count = c->u.sample.proc_count;
    for (size_t i = 0; i < c->u.sample.proc_count; i++)
        e.u.sampled.procs[i] = (struct msg_proc_sample){
            .proc = c->u.sample.procs[i], .alive = true, .cpu_ns = clock_now_ns() / 2, .rss_bytes = 1 << 20};
    emit(a, &e, c->number, MSG_EVENT_SAMPLED);
}

static void handle(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {0};
    bool held = strcmp(a->held_job, msg_text(c->job)) == 0;
    if (c->kind == MSG_COMMAND_JOB_OPEN) {
        mem_set_string(&a->held_job, c->job);
        emit_done(a, c->number, ERR_OK, NULL);
        return;
    }
    if (!held) {
        emit_done(a, c->number, c->kind == MSG_COMMAND_JOB_CLOSE ? ERR_OK : ERR_STATE,
                  "no such job is open here");
        return;
    }
    switch (c->kind) {
    case MSG_COMMAND_JOB_CLOSE:
        a->server = 0;
        a->load = 0;
        emit_done(a, c->number, ERR_OK, NULL);
        mem_set_string(&a->held_job, "");
        break;
    case MSG_COMMAND_START:
        start(a, c);
        break;
    case MSG_COMMAND_STOP:
        stop(a, c);
        break;
    case MSG_COMMAND_CHECK:
        e.u.checked.ok = true;
        emit(a, &e, c->number, MSG_EVENT_CHECKED);
        break;
    case MSG_COMMAND_LOAD:
        begin_load(a, c);
        break;
    case MSG_COMMAND_SAMPLE:
        sample(a, c);
        break;
    case MSG_COMMAND_JOB_OPEN:
    case MSG_COMMAND_FILES:
    case MSG_COMMAND_CHUNK:
    case MSG_COMMAND_COUNT:
        emit_done(a, c->number, ERR_UNSUPPORTED, "not in this world");
        break;
    }
}

/* ---- answers ------------------------------------------------------------------------------------- */

static void take_command(struct fake_agent *a, const struct msg_command *c)
{
    if (c->number == a->taken + 1) { /* else a repetition */
        a->taken++;
        handle(a, c);
    }
    if (chance(a->world, a->world->faults.restart))
        restart(a);
}

static void poll_again(struct fake_agent *a, uint64_t number, void *data)
{
    (void)number;
    (void)data;
    send_poll(a);
}

/* Not from inside the fleet's own calls. */
static void cut_now(struct fake_agent *a, uint64_t number, void *data)
{
    (void)data;
    cut(a, number);
}

/* False when the answer does not arrive: for a session that has ended, or lost with the connection. */
static bool arrives(struct fake_request *r, bool may_lose)
{
    struct fake_agent *a = r->agent;
    bool here = a->connected && a->peer == r->peer;
    if (here && r->is_poll)
        a->poll_open = false;
    if (here && !r->is_poll)
        a->push_open = false;
    free(r);
    if (here && may_lose && chance(a->world, a->world->faults.cut)) {
        later(a, 0, cut_now, draw(a->world) % (a->world->faults.away_ms + 1), NULL);
        return false;
    }
    return here;
}

void fake_answer_poll(void *world, void *request, const struct msg_command *const *items, size_t count)
{
    struct fake_agent *a = ((struct fake_request *)request)->agent;
    (void)world;
    if (!arrives(request, true))
        return;
    for (size_t i = 0; i < count; i++) {
        struct msg_command *copy = mem_zalloc(1, sizeof(*copy));
        msg_command_copy(copy, items[i]);
        later(a, 0, NULL, 0, NULL)->command = copy;
    }
    later(a, 0, poll_again, 0, NULL);
}

static void push_again(struct fake_agent *a, uint64_t number, void *data)
{
    (void)number;
    (void)data;
    send_push(a);
}

void fake_answer_push(void *world, void *request, uint64_t acked_event)
{
    struct fake_agent *a = ((struct fake_request *)request)->agent;
    (void)world;
    if (!arrives(request, true))
        return;
    if (!chance(a->world, a->world->faults.repeat))
        clear_outbox(a, acked_event);
    later(a, 0, push_again, 0, NULL);
}

void fake_refuse(void *world, void *request, enum err code, const char *why)
{
    struct fake_agent *a = ((struct fake_request *)request)->agent;
    (void)world;
    (void)code;
    (void)why;
    if (arrives(request, false))
        later(a, 1, push_again, 0, NULL);
}

void fake_drop_peer(void *world, void *peer, const char *why)
{
    struct fake_world *w = world;
    (void)why;
    for (size_t i = 0; i < w->agent_count; i++) {
        if (w->agents[i]->connected && w->agents[i]->peer == peer)
            cut(w->agents[i], 1);
    }
}

/* ---- the world ----------------------------------------------------------------------------------- */

struct fake_world *fake_world_new(const struct fake_world_options *options)
{
    struct fake_world *w = mem_zalloc(1, sizeof(*w));
    w->loop = options->loop;
    w->random = options->seed;
    w->faults = options->faults;
    w->gap_ns = UINT64_MAX;
    must(uv_timer_init(w->loop, &w->timer) == 0);
    w->timer.data = w;
    return w;
}

void fake_world_set_fleet(struct fake_world *w, struct fleet *fleet)
{
    w->fleet = fleet;
    arm(w);
}

void fake_world_set_faults(struct fake_world *w, const struct fake_faults *faults)
{
    w->faults = *faults;
}

void fake_world_stop(struct fake_world *w)
{
    for (size_t i = 0; i < w->agent_count; i++)
        cut(w->agents[i], UINT64_MAX);
    w->stopped = true;
    uv_close((uv_handle_t *)&w->timer, NULL);
}

void fake_world_free(struct fake_world *w)
{
    while (w->later != NULL) {
        struct fake_later *l = w->later;
        w->later = l->next;
        later_free(l);
    }
    for (size_t i = 0; i < w->agent_count; i++) {
        struct fake_agent *a = w->agents[i];
        clear_outbox(a, UINT64_MAX);
        free(a->held_job);
        free(a->name);
        free(a->boot_id);
        free(a->label);
        free(a);
    }
    for (size_t i = 0; i < w->peer_count; i++)
        free(w->peers[i]);
    free(w->peers);
    free(w);
}

void fake_world_add(struct fake_world *w, const char *name, const char *boot_id, const char *label)
{
    struct fake_agent *a = mem_zalloc(1, sizeof(*a));
    must(w->agent_count < FAKE_AGENTS_MAX);
    a->world = w;
    a->name = mem_strdup(name);
    a->boot_id = mem_strdup(boot_id);
    a->label = label ? mem_strdup(label) : NULL;
    a->incarnation = draw(w) | 1;
    a->held_job = mem_strdup("");
    w->agents[w->agent_count++] = a;
    come_back(a, 0, NULL);
}

static struct fake_agent *find(struct fake_world *w, const char *name)
{
    for (size_t i = 0; i < w->agent_count; i++) {
        if (strcmp(w->agents[i]->name, name) == 0)
            return w->agents[i];
    }
    must(false);
    return NULL;
}

void fake_world_cut(struct fake_world *w, const char *name, uint64_t away_ms)
{
    cut(find(w, name), away_ms);
}

void fake_world_kill(struct fake_world *w, const char *name)
{
    restart(find(w, name));
}

bool fake_world_is_idle(const struct fake_world *w)
{
    for (size_t i = 0; i < w->agent_count; i++) {
        const struct fake_agent *a = w->agents[i];
        if (a->held_job[0] != '\0' || a->server != 0 || a->load != 0)
            return false;
    }
    return true;
}

unsigned fake_world_starts(const struct fake_world *w)
{
    return w->starts;
}

unsigned fake_world_shared(const struct fake_world *w)
{
    return w->shared;
}

uint64_t fake_world_gap_ns(const struct fake_world *w)
{
    return w->gap_ns;
}
