#include "tests/support/fleet_stand.h"

#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void answer_poll(void *arg, void *request, const struct msg_command *const *items, size_t count)
{
    struct fleet_seen *s = arg;
    assert_non_null(request);
    s->polls++;
    s->command_count = count;
    for (size_t i = 0; i < count && i < 64; i++) {
        s->numbers[i] = items[i]->number;
        s->kinds[i] = items[i]->kind;
        s->runs[i] = items[i]->run;
        must(items[i]->controller == CONTROLLER);
    }
}

static void answer_push(void *arg, void *request, uint64_t acked)
{
    struct fleet_seen *s = arg;
    assert_non_null(request);
    s->pushes++;
    s->acked = acked;
}

static void refuse(void *arg, void *request, enum err code, const char *why)
{
    (void)request;
    (void)code;
    (void)why;
    ((struct fleet_seen *)arg)->refusals++;
}

static void drop_peer(void *arg, void *peer, const char *why)
{
    struct fleet_seen *s = arg;
    (void)why;
    s->drops++;
    s->dropped = peer;
}

static void on_event(void *arg, const char *job, uint32_t host, const struct msg_event *e)
{
    struct fleet_seen *s = arg;
    s->events++;
    s->event_answers = e->answers;
    s->event_number = e->number;
    s->event_kind = e->kind;
    s->event_host = host;
    snprintf(s->job, sizeof(s->job), "%s", job);
}

static void on_late(void *arg, struct fleet_agent *agent, uint64_t incarnation, const struct msg_event *e)
{
    struct fleet_seen *s = arg;
    (void)incarnation;
    (void)e;
    s->late++;
    s->late_agent = agent;
}

static void on_lost(void *arg, const char *job, uint32_t host, const char *cause)
{
    struct fleet_seen *s = arg;
    s->lost++;
    s->event_host = host;
    snprintf(s->job, sizeof(s->job), "%s", job);
    snprintf(s->cause, sizeof(s->cause), "%s", cause);
}

static void on_change(void *arg)
{
    ((struct fleet_seen *)arg)->changes++;
}

int fleet_stand_set_up(void **state)
{
    struct fleet_stand *f = mem_zalloc(1, sizeof(*f));
    f->fleet = fleet_new(&(struct fleet_options){.lease_ns = LEASE,
                                                 .incarnation = CONTROLLER,
                                                 .handlers = {.arg = &f->seen,
                                                              .answer_poll = answer_poll,
                                                              .answer_push = answer_push,
                                                              .refuse = refuse,
                                                              .drop_peer = drop_peer,
                                                              .on_event = on_event,
                                                              .on_late = on_late,
                                                              .on_lost = on_lost,
                                                              .on_change = on_change}});
    *state = f;
    return 0;
}

int fleet_stand_tear_down(void **state)
{
    struct fleet_stand *f = *state;
    fleet_free(f->fleet);
    free(f);
    return 0;
}

struct fleet_agent *fleet_stand_hello(struct fleet_stand *f, int peer, const char *name, uint64_t incarnation,
                                      const char *held, const char *label, uint64_t now)
{
    char *labels[] = {(char *)(uintptr_t)label};
    struct msg_hello m = {.role = MSG_ROLE_AGENT,
                          .name = (char *)(uintptr_t)name,
                          .incarnation = incarnation,
                          .held_job = (char *)(uintptr_t)held,
                          .held_run = f->held_run,
                          .host = {.cpus = 2, .labels = {.items = labels, .count = label ? 1 : 0}}};
    struct fleet_agent *a = NULL;
    uint64_t acked = 0;
    assert_int_equal(fleet_hello(f->fleet, &f->peers[peer], &m, "10.0.0.1", now, &a, &acked, NULL), ERR_OK);
    return a;
}

enum err fleet_stand_reserve(struct fleet_stand *f, const char *job, const char *label_value,
                             struct fleet_host out[2])
{
    struct experiment_label label = {.key = (char *)(uintptr_t) "pool",
                                     .value = (char *)(uintptr_t)label_value};
    struct experiment_role roles[] = {{.name = (char *)(uintptr_t) "load", .count = 1},
                                      {.name = (char *)(uintptr_t) "server",
                                       .labels = &label,
                                       .label_count = label_value ? 1 : 0,
                                       .count = 1}};
    struct err_detail d;
    return fleet_reserve(f->fleet, job, f->run + 1, roles, 2, out, &d);
}

void fleet_stand_push(struct fleet_stand *f, struct fleet_agent *a, uint64_t incarnation, uint64_t number,
                      uint64_t answers, enum msg_event_kind kind, const char *job, uint64_t now)
{
    struct msg_event e = {.number = number, .answers = answers, .kind = kind, .job = (char *)(uintptr_t)job};
    fleet_stand_push_event(f, a, incarnation, &e, now);
}

void fleet_stand_push_event(struct fleet_stand *f, struct fleet_agent *a, uint64_t incarnation,
                            struct msg_event *e, uint64_t now)
{
    struct msg_push p = {.incarnation = incarnation, .items = e, .count = 1};
    fleet_push(f->fleet, a, &f->requests[e->number % 64], &p, now);
}

enum err fleet_stand_command(struct fleet_stand *f, struct fleet_agent *a, const char *job,
                             enum msg_command_kind kind, uint64_t tag)
{
    struct msg_command c = {.kind = kind};
    enum err e = fleet_command(f->fleet, a, job, &c, tag);
    fleet_flush(f->fleet);
    return e;
}

/* A pair of agents that job "j" holds: a is its load host (0), b its server (1), both opened. */
void fleet_stand_open_pair(struct fleet_stand *f, struct fleet_agent **a, struct fleet_agent **b)
{
    struct fleet_host hosts[2];
    *a = fleet_stand_hello(f, 0, "a", 7, "", NULL, T0);
    *b = fleet_stand_hello(f, 1, "b", 8, "", "pool=sut", T0);
    assert_int_equal(fleet_stand_reserve(f, "j", "sut", hosts), ERR_OK);
    assert_ptr_equal(hosts[0].agent, *a);
    assert_ptr_equal(hosts[1].agent, *b);
    assert_int_equal(fleet_stand_command(f, *a, "j", MSG_COMMAND_JOB_OPEN, 100), ERR_OK);
    assert_int_equal(fleet_stand_command(f, *b, "j", MSG_COMMAND_JOB_OPEN, 101), ERR_OK);
    fleet_poll(f->fleet, *a, &f->requests[1], 0, T0);
    fleet_poll(f->fleet, *b, &f->requests[2], 0, T0);
    fleet_stand_push(f, *a, 7, 1, 1, MSG_EVENT_DONE, "j", T0);
    fleet_stand_push(f, *b, 8, 1, 1, MSG_EVENT_DONE, "j", T0);
    fleet_settle(f->fleet, *a, 7, 1);
    fleet_settle(f->fleet, *b, 8, 1);
    assert_int_equal(f->seen.events, 2);
    assert_int_equal(f->seen.pushes, 2);
    memset(&f->seen, 0, sizeof(f->seen));
}
