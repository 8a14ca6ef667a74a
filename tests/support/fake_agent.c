#include "tests/support/fake_agent.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/fake_inner.h"

/* splitmix64: the whole run follows from the seed, but for the job thread's timing. */
uint64_t fake_draw(struct fake_world *w)
{
    uint64_t z = w->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool fake_chance(struct fake_world *w, unsigned per_thousand)
{
    return fake_draw(w) % 1000 < per_thousand;
}

/* ---- time ---------------------------------------------------------------------------------------------- */

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

struct fake_later *fake_later_add(struct fake_agent *a, uint64_t after_ms,
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

/* ---- the link ------------------------------------------------------------------------------------------ */

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
    struct msg_event items[FAKE_OUTBOX_MAX];
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
static void add_to_outbox(struct fake_agent *a, struct msg_event *e, uint64_t answers,
                          enum msg_event_kind kind);

/* The connection ends; the agent notices at once and dials again after a while. */
static void cut(struct fake_agent *a, uint64_t away_ms)
{
    if (!a->connected)
        return;
    a->connected = false;
    a->cut_at_ns = clock_now_ns();
    a->poll_open = a->push_open = false;
    fleet_gone(a->world->fleet, a->peer);
    if (away_ms != UINT64_MAX)
        fake_later_add(a, away_ms, come_back, 0, NULL);
}

/* Its lease ran out meanwhile. The news goes out with the next event, which may be that a job is open again:
 * the worst moment for it. */
static bool lapse(struct fake_agent *a)
{
    if (a->held_job[0] == '\0' || clock_now_ns() - a->cut_at_ns < a->world->lease_ns)
        return false;
    struct msg_event e = {.code = ERR_TIMEOUT,
                          .text = (char *)(uintptr_t) "heard nothing from the controller",
                          .job = a->held_job,
                          .run = a->held_run,
                          .controller = a->held_controller};
    add_to_outbox(a, &e, 0, MSG_EVENT_DONE);
    a->server = 0;
    a->load = 0;
    mem_set_string(&a->held_job, "");
    return true;
}

static void come_back(struct fake_agent *a, uint64_t number, void *data)
{
    struct fake_world *w = a->world;
    uint64_t acked = 0;
    (void)number;
    (void)data;
    if (a->connected || w->stopped)
        return;
    bool lapsed = lapse(a);
    w->peers = mem_realloc(w->peers, w->peer_count + 1, sizeof(*w->peers));
    a->peer = w->peers[w->peer_count++] = mem_zalloc(1, sizeof(int));
    char cpus[] = "0-3";
    struct msg_hello hello = {.role = MSG_ROLE_AGENT,
                              .name = a->name,
                              .incarnation = a->incarnation,
                              .held_job = a->held_job,
                              .held_run = a->held_run,
                              .host = {.hostname = a->name,
                                       .boot_id = a->boot_id,
                                       .cpus = 4,
                                       .cpu_list = cpus,
                                       .labels = {.items = &a->label, .count = a->label ? 1 : 0}}};
    a->connected = true;
    must(fleet_hello(w->fleet, a->peer, &hello, "10.0.0.9", clock_now_ns(), &a->handle, &acked, NULL) ==
         ERR_OK);
    send_poll(a);
    if (!lapsed)
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
    fake_later_add(a, 1, come_back, 0, NULL);
}

void fake_emit(struct fake_agent *a, struct msg_event *e, uint64_t answers, enum msg_event_kind kind)
{
    e->job = a->held_job;
    e->run = a->held_run;
    e->controller = a->held_controller;
    fake_emit_for(a, e, answers, kind);
}

static void add_to_outbox(struct fake_agent *a, struct msg_event *e, uint64_t answers,
                          enum msg_event_kind kind)
{
    struct msg_event *copy = mem_zalloc(1, sizeof(*copy));
    must(a->outbox_count < FAKE_OUTBOX_MAX);
    e->number = ++a->last_event;
    e->answers = answers;
    e->kind = kind;
    msg_event_copy(copy, e);
    a->outbox[a->outbox_count++] = copy;
}

void fake_emit_for(struct fake_agent *a, struct msg_event *e, uint64_t answers, enum msg_event_kind kind)
{
    add_to_outbox(a, e, answers, kind);
    send_push(a);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static void take_command(struct fake_agent *a, const struct msg_command *c)
{
    if (c->number == a->taken + 1) { /* else a repetition */
        a->taken++;
        fake_host_handle(a, c);
    }
    if (fake_chance(a->world, a->world->faults.restart))
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
    if (here && may_lose && fake_chance(a->world, a->world->faults.cut)) {
        fake_later_add(a, 0, cut_now, fake_draw(a->world) % (a->world->faults.away_ms + 1), NULL);
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
        fake_later_add(a, 0, NULL, 0, NULL)->command = copy;
    }
    fake_later_add(a, 0, poll_again, 0, NULL);
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
    if (!fake_chance(a->world, a->world->faults.repeat))
        clear_outbox(a, acked_event);
    fake_later_add(a, 0, push_again, 0, NULL);
}

void fake_refuse(void *world, void *request, enum err code, const char *why)
{
    struct fake_agent *a = ((struct fake_request *)request)->agent;
    (void)world;
    (void)code;
    (void)why;
    if (arrives(request, false))
        fake_later_add(a, 1, push_again, 0, NULL);
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

/* ---- the world ----------------------------------------------------------------------------------------- */

struct fake_world *fake_world_new(const struct fake_world_options *options)
{
    struct fake_world *w = mem_zalloc(1, sizeof(*w));
    w->loop = options->loop;
    w->random = options->seed;
    w->faults = options->faults;
    w->lease_ns = options->lease_ns;
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
    a->incarnation = fake_draw(w) | 1;
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

uint64_t fake_world_file_bytes(const struct fake_world *w)
{
    return w->file_bytes;
}

uint64_t fake_world_gap_ns(const struct fake_world *w)
{
    return w->gap_ns;
}
