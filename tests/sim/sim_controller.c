/*
 * The controller's heart (fleet, jobs, one job's life, the store) against agents that lose connections,
 * restart, and report dead servers and generators, all from a seed. Whatever happens, a job that is resumed
 * often enough ends with every window present exactly once, and every host is free. sim_controller
 * [FIRST_SEED [COUNT]]
 */
#include "common/blobs.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "controller/job/job_table.h"
#include "tests/support/fake_agent.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEASE_NS   (300 * NS_PER_MS)
#define SEEDS      24u
#define TRIES_MAX  60u
#define CALM_AFTER 20u /* tries with faults; then there are none */

static const char experiment_text[] =
    "{ \"name\": \"sim\", \"targets\": ["
    "  { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001, \"ready\": { \"http\": \"/\" } },"
    "  { \"name\": \"b\", \"start\": [\"b\"], \"port\": 8002, \"ready\": { \"http\": \"/\" } } ],"
    "  \"checks\": [ { \"name\": \"root\", \"request\": { \"path\": \"/\" }, \"expect\": { \"status\": 200 } "
    "} ],"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": [1, 2],"
    "                    \"warmup\": \"5ms\", \"duration\": \"10ms\", \"timeout\": \"10ms\" } ],"
    "  \"design\": { \"rounds\": 2, \"order\": \"latin-square\", \"cooldown\": \"0s\", \"gap\": \"0s\" },"
    "  \"gates\": { \"errors\": 0, \"retries\": 2 } }";

struct sim {
    uint64_t seed;
    uv_loop_t loop;
    struct fake_world *world;
    struct fleet *fleet;
    struct store_worker *worker;
    struct job_table *jobs;
    struct store *store;
    struct scratch scratch;
    char store_path[96];
    bool closed;
};

NORETURN static void fail(const struct sim *s, const char *what, const char *why)
{
    fprintf(stderr, "seed %llu: %s: %s\n", (unsigned long long)s->seed, what, why);
    exit(1);
}

#define CHECK(s, e, d)                                                                                       \
    do {                                                                                                     \
        if ((e) != ERR_OK)                                                                                   \
            fail(s, #e, (d)->text);                                                                          \
    } while (0)

/* ---- the fleet's handlers ------------------------------------------------------------------------ */

static void answer_poll(void *arg, void *request, const struct msg_command *const *items, size_t count)
{
    fake_answer_poll(((struct sim *)arg)->world, request, items, count);
}

static void answer_push(void *arg, void *request, uint64_t acked_event)
{
    fake_answer_push(((struct sim *)arg)->world, request, acked_event);
}

static void refuse(void *arg, void *request, enum err code, const char *why)
{
    fake_refuse(((struct sim *)arg)->world, request, code, why);
}

static void drop_peer(void *arg, void *peer, const char *why)
{
    fake_drop_peer(((struct sim *)arg)->world, peer, why);
}

static void on_event(void *arg, const char *job, uint32_t host, const struct msg_event *e)
{
    job_table_on_event(((struct sim *)arg)->jobs, job, host, e);
}

static void on_late(void *arg, struct fleet_agent *agent, uint64_t incarnation, const struct msg_event *e)
{
    struct sim *s = arg;
    struct err_detail d;
    CHECK(s, store_add_late_event(s->store, fleet_agent_name(agent), incarnation, e, &d), &d);
    fleet_settle_late(s->fleet, agent);
}

static void on_lost(void *arg, const char *job, uint32_t host, const char *cause)
{
    job_table_on_lost(((struct sim *)arg)->jobs, job, host, cause);
}

static void on_change(void *arg)
{
    struct sim *s = arg;
    if (s->jobs != NULL)
        job_table_on_change(s->jobs);
}

/* ---- the world ----------------------------------------------------------------------------------- */

static void sim_start(struct sim *s, uint64_t seed)
{
    struct err_detail d;
    *s = (struct sim){.seed = seed};
    scratch_init(&s->scratch);
    snprintf(s->store_path, sizeof(s->store_path), "%s/store.db", s->scratch.dir);
    must(uv_loop_init(&s->loop) == 0);
    CHECK(s, store_open(s->store_path, false, &s->store, &d), &d);
    CHECK(s,
          store_worker_new(&(struct store_worker_options){.loop = &s->loop, .store_path = s->store_path},
                           &s->worker, &d),
          &d);
    s->fleet = fleet_new(&(struct fleet_options){.lease_ns = LEASE_NS,
                                                 .incarnation = seed + 1,
                                                 .handlers = {.arg = s,
                                                              .answer_poll = answer_poll,
                                                              .answer_push = answer_push,
                                                              .refuse = refuse,
                                                              .drop_peer = drop_peer,
                                                              .on_event = on_event,
                                                              .on_late = on_late,
                                                              .on_lost = on_lost,
                                                              .on_change = on_change}});
    struct job_table_options options = {.loop = &s->loop,
                                        .fleet = s->fleet,
                                        .worker = s->worker,
                                        .store_path = s->store_path,
                                        .blob_dir = s->scratch.dir,
                                        .own_boot_id = "elsewhere"};
    CHECK(s, job_table_new(&options, &s->jobs, &d), &d);
    s->world =
        fake_world_new(&(struct fake_world_options){.loop = &s->loop, .seed = seed, .lease_ns = LEASE_NS});
    fake_world_set_fleet(s->world, s->fleet);
    fake_world_add(s->world, "load1", seed % 2 ? "same" : "one", NULL);
    fake_world_add(s->world, "server1", seed % 2 ? "same" : "two", NULL);
}

static void on_table_closed(void *arg)
{
    ((struct sim *)arg)->closed = true;
}

static void sim_end(struct sim *s)
{
    fake_world_stop(s->world);
    job_table_close(&s->jobs, on_table_closed, s);
    while (!s->closed)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    fleet_free(s->fleet);
    fake_world_free(s->world);
    store_worker_free(s->worker);
    store_close(s->store);
    must(uv_loop_close(&s->loop) == 0);
    scratch_fini(&s->scratch);
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

static void add_job_from(struct sim *s, const struct msg_submit *m)
{
    struct err_detail d;
    struct job_spec *spec = NULL;
    struct store_job row;
    CHECK(s, job_spec_from_submit(m, &spec, &d), &d);
    CHECK(s, job_spec_store_files(spec, s->scratch.dir, &d), &d);
    job_spec_row(spec, &row);
    CHECK(s, store_add_job(s->store, &row, &d), &d);
    CHECK(s, job_table_add(s->jobs, &spec, &d), &d);
}

static void add_job_of(struct sim *s, const char *id, const char *text)
{
    add_job_from(s,
                 &(struct msg_submit){.job = (char *)(uintptr_t)id, .experiment = (char *)(uintptr_t)text});
}

static void add_job(struct sim *s, const char *id)
{
    add_job_of(s, id, experiment_text);
}

static void resume_job(struct sim *s, const struct store_job *job)
{
    struct err_detail d;
    struct job_spec *spec = NULL;
    CHECK(s, job_spec_from_store(job, s->scratch.dir, &spec, &d), &d);
    CHECK(s, store_set_job_state(s->store, job->id, STORE_JOB_QUEUED, "", 0, &d), &d);
    CHECK(s, job_table_add(s->jobs, &spec, &d), &d);
}

static bool all_free(const struct sim *s)
{
    for (size_t i = 0; i < fleet_count(s->fleet); i++) {
        struct fleet_info info;
        fleet_get(s->fleet, i, &info);
        if (info.state != FLEET_FREE || !info.connected)
            return false;
    }
    return fake_world_is_idle(s->world);
}

static void run_until_ended(struct sim *s, const char *id)
{
    uint64_t limit_ns = wait_limit();
    struct job_look look;
    while (job_table_look(s->jobs, id, &look))
        if (!wait_turn(&s->loop, limit_ns))
            fail(s, "the job does not end", id);
}

static void run_until_free(struct sim *s)
{
    uint64_t limit_ns = wait_limit();
    while (!all_free(s))
        if (!wait_turn(&s->loop, limit_ns))
            fail(s, "hosts", "are not free again");
}

static void expect_every_window(struct sim *s, const char *id)
{
    struct err_detail d;
    bool *present = NULL;
    CHECK(s, store_windows_present(s->store, id, 8, &present, &d), &d);
    for (int i = 0; i < 8; i++) {
        if (!present[i])
            fail(s, "a window", "is missing in a job that is done");
    }
    free(present);
}

/* Tries until the job is done; every failure must name a host. */
static void play_to_the_end(struct sim *s, const struct fake_faults *faults)
{
    struct err_detail d;
    const struct fake_faults calm = {0};
    enum store_job_state state = STORE_JOB_QUEUED;
    fake_world_set_faults(s->world, faults);
    add_job(s, "j");
    for (unsigned tries = 0; state != STORE_JOB_DONE; tries++) {
        struct store_job job;
        if (tries == TRIES_MAX)
            fail(s, "the job", "never completes");
        if (tries == CALM_AFTER)
            fake_world_set_faults(s->world, &calm);
        run_until_ended(s, "j");
        CHECK(s, store_get_job(s->store, "j", &job, &d), &d);
        state = job.state;
        if (state != STORE_JOB_DONE && state != STORE_JOB_FAILED)
            fail(s, "the job ended", store_job_state_name(state));
        if (state == STORE_JOB_FAILED && strstr(job.cause, "load1") == NULL &&
            strstr(job.cause, "server1") == NULL && strstr(job.cause, "target") == NULL)
            fail(s, "a failure names no host", job.cause);
        if (state == STORE_JOB_FAILED)
            resume_job(s, &job);
        store_job_fini(&job);
    }
    fake_world_set_faults(s->world, &calm);
    expect_every_window(s, "j");
    run_until_free(s);
}

static void run_seed(uint64_t seed)
{
    struct sim s;
    sim_start(&s, seed);
    /* Each fault by itself in turn, then all of them. */
    struct fake_faults all = {.cut = 30,
                              .repeat = 50,
                              .restart = 5,
                              .server_die = 200,
                              .load_fail = 100,
                              .unbalanced = 100,
                              .away_ms = 30};
    struct fake_faults f = {.away_ms = 30};
    switch (seed % 6) {
    case 0:
        f = (struct fake_faults){0};
        break;
    case 1:
        f.cut = 60;
        break;
    case 2:
        f.repeat = 300;
        break;
    case 3:
        f.restart = 15;
        break;
    case 4:
        f.server_die = 400;
        f.load_fail = 200;
        f.unbalanced = 200;
        break;
    default:
        f = all;
        break;
    }
    play_to_the_end(&s, &f);
    sim_end(&s);
}

/* ---- what no seed decides ------------------------------------------------------------------------- */

static bool has_stored(struct sim *s, const char *id)
{
    struct store_job job;
    struct err_detail d;
    CHECK(s, store_get_job(s->store, id, &job, &d), &d);
    bool yes = job.windows_done > 0;
    store_job_fini(&job);
    return yes;
}

static void run_until_stored(struct sim *s, const char *id)
{
    uint64_t limit_ns = wait_limit();
    while (!has_stored(s, id))
        if (!wait_turn(&s->loop, limit_ns))
            fail(s, "no window", "is stored");
}

static void run_until_measuring(struct sim *s, const char *id)
{
    uint64_t limit_ns = wait_limit();
    struct job_look look;
    while (!job_table_look(s->jobs, id, &look) || strncmp(look.view->doing, "round", 5) != 0)
        if (!wait_turn(&s->loop, limit_ns))
            fail(s, "the job does not measure", id);
}

static void expect_ended(struct sim *s, const char *id, enum store_job_state state, const char *word)
{
    struct store_job job;
    struct err_detail d;
    run_until_ended(s, id);
    CHECK(s, store_get_job(s->store, id, &job, &d), &d);
    if (job.state != state || strstr(job.cause, word) == NULL)
        fail(s, store_job_state_name(job.state), job.cause);
    if (state != STORE_JOB_DONE)
        resume_job(s, &job);
    store_job_fini(&job);
}

/* Cancelled in the middle, cut off for longer than a lease, killed: each time named, free, and resumable. */
static void run_interruptions(void)
{
    struct sim s;
    struct err_detail d;
    sim_start(&s, 1);
    add_job(&s, "j");
    run_until_stored(&s, "j");
    CHECK(&s, job_table_cancel(s.jobs, "j", "cancelled by 'me'", &d), &d);
    expect_ended(&s, "j", STORE_JOB_CANCELLED, "by 'me'");
    run_until_measuring(&s, "j");
    fake_world_cut(s.world, "load1", 3000);
    expect_ended(&s, "j", STORE_JOB_FAILED, "agent 'load1' lost: nothing heard");
    run_until_measuring(&s, "j");
    fake_world_kill(s.world, "server1");
    expect_ended(&s, "j", STORE_JOB_FAILED, "agent 'server1' lost: the agent program was started anew");
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    expect_every_window(&s, "j");
    run_until_free(&s);
    sim_end(&s);
}

/* A host that was cut off for longer than its lease comes back, the job is resumed, and only then the host
 * says that its lease ran out: that was the run before, and the present one goes on to its end. */
static void run_lapses(void)
{
    struct sim s;
    static const char *const hosts[] = {"load1", "server1"};
    sim_start(&s, 5);
    add_job(&s, "j");
    for (unsigned i = 0; i < 6; i++) {
        char cause[64];
        const char *host = hosts[i % ARRAY_LEN(hosts)];
        run_until_measuring(&s, "j");
        fake_world_cut(s.world, host, LEASE_NS / NS_PER_MS + 100);
        snprintf(cause, sizeof cause, "agent '%s' lost: its lease ran out", host);
        expect_ended(&s, "j", STORE_JOB_FAILED, cause);
    }
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    expect_every_window(&s, "j");
    run_until_free(&s);
    sim_end(&s);
}

static void expect_no_invalid(struct sim *s, const char *id)
{
    struct err_detail d;
    uint32_t invalid = 0;
    CHECK(s, store_count_invalid(s->store, id, &invalid, &d), &d);
    if (invalid != 0)
        fail(s, "a window", "was given up while the server's host was away");
}

/* The server's host is gone and every load fails at once, long before the lease is over: that must not use up
 * the attempts of this window and of those after it. */
static void run_server_host_gone(void)
{
    struct sim s;
    const struct fake_faults refused = {.refused = 1000};
    const struct fake_faults calm = {0};
    sim_start(&s, 4);
    add_job(&s, "j");
    run_until_stored(&s, "j");
    fake_world_cut(s.world, "server1", 3000);
    fake_world_set_faults(s.world, &refused);
    expect_ended(&s, "j", STORE_JOB_FAILED, "agent 'server1' lost: nothing heard");
    expect_no_invalid(&s, "j");
    fake_world_set_faults(s.world, &calm);
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    expect_every_window(&s, "j");
    expect_no_invalid(&s, "j");
    sim_end(&s);
}

/* Two jobs want the same hosts: one after the other. A third one wants what nobody has, and can be cancelled.
 */
static void run_queue(void)
{
    struct sim s;
    struct err_detail d;
    struct job_look look;
    sim_start(&s, 2);
    add_job(&s, "first");
    add_job(&s, "second");
    (void)uv_run(&s.loop, UV_RUN_ONCE);
    if (!job_table_look(s.jobs, "second", &look) || strstr(look.view->doing, "waiting for hosts") == NULL)
        fail(&s, "the second job", "does not wait for hosts");
    expect_ended(&s, "first", STORE_JOB_DONE, "");
    expect_ended(&s, "second", STORE_JOB_DONE, "");
    fake_world_cut(s.world, "load1", UINT64_MAX);
    add_job(&s, "third");
    (void)uv_run(&s.loop, UV_RUN_ONCE);
    CHECK(&s, job_table_cancel(s.jobs, "third", "not any more", &d), &d);
    run_until_ended(&s, "third");
    if (job_table_cancel(s.jobs, "third", "again", &d) != ERR_NOT_NOW)
        fail(&s, "a job that has ended", "could be cancelled");
    sim_end(&s);
}

/* No file may grow: what SQLite sees is a full disk. */
static void set_disk_full(bool full)
{
    struct rlimit limit;
    must(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = full ? 1 : limit.rlim_max;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The disk fills up in mid-job: the job ends with that as its cause, for those who watch at once and in the
 * store as soon as it can be written. So does one that is cancelled while it is queued. */
static void run_full_disk(void)
{
    struct sim s;
    struct store_job job;
    struct err_detail d;
    sim_start(&s, 3);
    add_job(&s, "j");
    add_job(&s, "k");
    run_until_stored(&s, "j");
    set_disk_full(true);
    CHECK(&s, job_table_cancel(s.jobs, "k", "not any more", &d), &d);
    uint64_t limit_ns = wait_limit();
    struct job_look look;
    while (!job_table_look(s.jobs, "j", &look) || look.unstored == NULL)
        if (!wait_turn(&s.loop, limit_ns))
            fail(&s, "a full disk", "does not end the job");
    if (look.unstored->state != STORE_JOB_FAILED || strstr(look.unstored->cause, "stored") == NULL)
        fail(&s, "the cause", look.unstored->cause);
    run_until_free(&s);
    set_disk_full(false);
    CHECK(&s, store_get_job(s.store, "j", &job, &d), &d);
    if (job.windows_done == 0)
        fail(&s, "what was stored", "is not there");
    store_job_fini(&job);
    job_table_on_change(s.jobs); /* a host comes or goes: it is tried again */
    expect_ended(&s, "j", STORE_JOB_FAILED, "stored");
    run_until_ended(&s, "k");
    CHECK(&s, store_get_job(s.store, "k", &job, &d), &d);
    if (job.state != STORE_JOB_CANCELLED || strcmp(job.cause, "not any more") != 0)
        fail(&s, store_job_state_name(job.state), job.cause);
    store_job_fini(&job);
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    expect_every_window(&s, "j");
    sim_end(&s);
}

/* Servers with CPUs of their own that live as long as the job: whoever's turn it is, the generator keeps off
 * its CPUs. On a machine of four, a's are what b's generator gets, and the other way round. */
static void run_turns(void)
{
    struct sim s;
    sim_start(&s, 1);
    add_job_of(&s, "j",
               "{ \"name\": \"turns\", \"targets\": ["
               "  { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001, \"cpus\": \"0-1\" },"
               "  { \"name\": \"b\", \"start\": [\"b\"], \"port\": 8002, \"cpus\": \"2-3\" } ],"
               "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 1,"
               "                    \"duration\": \"10ms\" } ],"
               "  \"design\": { \"rounds\": 4, \"order\": \"latin-square\", \"fresh_process\": \"job\" } }");
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    if (fake_world_starts(s.world) != 2)
        fail(&s, "a server", "was started anew");
    if (fake_world_shared(s.world) != 0)
        fail(&s, "a generator", "was given CPUs of the server it loads");
    run_until_free(&s);
    sim_end(&s);
}

/* The gap is kept between the windows of a target, with a fresh process for each window, too. */
static void run_gaps(const char *fresh)
{
    struct sim s;
    char text[1024];
    snprintf(
        text, sizeof(text),
        "{ \"name\": \"gaps\", \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
        "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": [1, 2, 3],"
        "                    \"duration\": \"10ms\" } ],"
        "  \"design\": { \"gap\": \"300ms\", \"fresh_process\": \"%s\" } }",
        fresh);
    sim_start(&s, 1);
    add_job_of(&s, "j", text);
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    if (fake_world_gap_ns(s.world) < 300 * NS_PER_MS)
        fail(&s, "the gap is not kept with a fresh process for each", fresh);
    run_until_free(&s);
    sim_end(&s);
}

static const char files_text[] =
    "{ \"name\": \"files\", \"files\": [\"a\", \"b\"],"
    "  \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 1,"
    "                    \"duration\": \"10ms\" } ] }";

static void add_job_with_files(struct sim *s, const char *id)
{
    static char names[][2] = {"a", "b"};
    struct msg_file files[ARRAY_LEN(names)];
    struct blobs *blobs = NULL;
    struct err_detail d;
    CHECK(s, blobs_open(s->scratch.dir, UINT64_MAX, &blobs, &d), &d);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        uint64_t have = 0;
        files[i] = (struct msg_file){.path = names[i], .size_bytes = 5 + i, .mode = 0644};
        sha256_of("hello!", 5 + i, files[i].hash);
        CHECK(s, blobs_write(blobs, files[i].hash, 5 + i, 0, "hello!", 5 + i, &have, &d), &d);
    }
    blobs_free(blobs);
    add_job_from(s, &(struct msg_submit){.job = (char *)(uintptr_t)id,
                                         .experiment = (char *)(uintptr_t)files_text,
                                         .files = {.items = files, .count = ARRAY_LEN(files)}});
    expect_ended(s, id, STORE_JOB_DONE, "");
}

static void expect_line(struct sim *s, const char *id, const char *wanted)
{
    struct msg_strings lines = {0};
    struct err_detail d;
    bool said = false;
    CHECK(s, store_get_lines(s->store, id, 0, 100, &lines, &d), &d);
    for (size_t i = 0; i < lines.count; i++)
        said = said || strstr(lines.items[i], wanted) != NULL;
    if (!said)
        fail(s, "the job did not say", wanted);
    mem_free_strings(&lines.items, &lines.count);
}

/* The server's host gets what it lacks of each file, and nothing when it has all. */
static void run_files(void)
{
    struct sim s;
    sim_start(&s, 1);
    add_job_with_files(&s, "j");
    if (fake_world_file_bytes(s.world) != 5 + 6 - 1)
        fail(&s, "the files", "were not sent, or not what was missing of them");
    expect_line(&s, "j", "files: 2 of 2 sent to 'server1', 10 bytes");
    add_job_with_files(&s, "k");
    if (fake_world_file_bytes(s.world) != 10)
        fail(&s, "the files", "were sent to a host that has them");
    expect_line(&s, "k", "files: 2, all at 'server1' already");
    run_until_free(&s);
    sim_end(&s);
}

/* What is shown while a window runs is the rate between the last two ticks. */
static void run_live(void)
{
    struct sim s;
    uint64_t limit_ns = wait_limit();
    struct job_look look;
    sim_start(&s, 1);
    add_job_of(
        &s, "j",
        "{ \"name\": \"live\", \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
        "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 1,"
        "                    \"duration\": \"500ms\" } ] }");
    while (job_table_look(s.jobs, "j", &look) && look.view->ok_per_s != FAKE_OK_PER_S)
        if (!wait_turn(&s.loop, limit_ns))
            fail(&s, "the job does not end", "j");
    if (look.view == NULL)
        fail(&s, "the live rate", "was never shown");
    expect_ended(&s, "j", STORE_JOB_DONE, "");
    run_until_free(&s);
    sim_end(&s);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS;
    log_set_level(LOG_ERROR);
    (void)signal(SIGXFSZ, SIG_IGN);
    if (argc <= 1) {
        run_interruptions();
        run_lapses();
        run_server_host_gone();
        run_queue();
        run_full_disk();
        run_turns();
        run_files();
        run_live();
        run_gaps("round");
        run_gaps("window");
    }
    for (uint64_t i = 0; i < count; i++)
        run_seed(first + i);
    printf("%llu seeds from %llu: every job completed\n", (unsigned long long)count,
           (unsigned long long)first);
    return 0;
}
