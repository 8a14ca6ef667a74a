/* An operator and an agent at a real controller, over ipc; strangers over TLS. */
#include "controller/daemon/server.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/sha256.h"
#include "controller/daemon/doorstep.h"
#include "controller/store/store_read.h"
#include "tests/support/raw_peer.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS       (30 * NS_PER_S)
#define BLOB_BYTES_MAX 64u

static const char experiment_text[] =
    "{ \"name\": \"desk\", \"files\": [\"a\"],"
    "  \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 1,"
    "                    \"duration\": \"1s\" } ] }";

struct fixture {
    uv_loop_t loop;
    struct scratch scratch;
    char store_path[96];
    char address[96];
    const char *addresses[2];
    char *lab_dir; /* NULL: no CA, no TLS */
    struct identity lab;
    struct server *server;
    struct link_client *client;
    bool up;
    bool closed;
    /* The last answer. */
    bool answered;
    enum err err;
    struct err_detail detail;
    struct msg reply;
};

static void on_up(void *arg, const struct msg_welcome *welcome)
{
    (void)welcome;
    ((struct fixture *)arg)->up = true;
}

static void on_down(void *arg, enum err e, const char *why, bool final)
{
    (void)e;
    (void)why;
    (void) final;
    ((struct fixture *)arg)->up = false;
}

static void start_server(struct fixture *f)
{
    struct err_detail d;
    enum err e = server_new(&(struct server_options){.loop = &f->loop,
                                                     .addresses = f->addresses,
                                                     .address_count = f->lab_dir != NULL ? 2 : 1,
                                                     .state_dir = f->scratch.dir,
                                                     .store_path = f->store_path,
                                                     .identity_dir = f->lab_dir,
                                                     .identity = f->lab_dir != NULL ? &f->lab : NULL,
                                                     .lease_ns = 10 * NS_PER_S,
                                                     .blob_bytes_max = BLOB_BYTES_MAX},
                            &f->server, &d);
    if (e != ERR_OK)
        fail_msg("%s", d.text);
    assert_int_equal(server_adopt_jobs(f->server, &d), ERR_OK);
}

static void dial_as(struct fixture *f, enum msg_role role, const char *name)
{
    char *unknown = (char *)(uintptr_t) "x";
    struct err_detail d;
    struct msg_hello hello = {.protocol = MSG_PROTOCOL_VERSION,
                              .build = (char *)(uintptr_t)SPLITBENCH_BUILD,
                              .role = role,
                              .name = (char *)(uintptr_t)name,
                              .incarnation = 1,
                              .host = {.hostname = unknown, .boot_id = unknown, .cpus = 1}};
    assert_int_equal(
        link_client_new(
            &(struct link_client_options){.loop = &f->loop,
                                          .address = f->address,
                                          .connect_timeout_ns = 5 * NS_PER_S,
                                          .handlers = {.arg = f, .on_up = on_up, .on_down = on_down}},
            &hello, &f->client, &d),
        ERR_OK);
    wait_flag(&f->loop, &f->up, "a session");
}

static void dial(struct fixture *f)
{
    dial_as(f, MSG_ROLE_OPERATOR, "tester");
}

static void on_closed(void *arg)
{
    ((struct fixture *)arg)->closed = true;
}

static void hang_up(struct fixture *f)
{
    f->closed = false;
    link_client_close(&f->client, on_closed, f);
    wait_flag(&f->loop, &f->closed, "the end");
    f->up = false;
}

static void stop_server(struct fixture *f)
{
    f->closed = false;
    server_close(&f->server, "stopped by the test", on_closed, f);
    wait_flag(&f->loop, &f->closed, "the end");
}

static int setup_with(void **state, bool lab)
{
    struct fixture *f = mem_zalloc(1, sizeof(*f));
    log_set_level(LOG_ERROR);
    scratch_init(&f->scratch);
    snprintf(f->store_path, sizeof(f->store_path), "%s/store.db", f->scratch.dir);
    snprintf(f->address, sizeof(f->address), "ipc://%s/sock", f->scratch.dir);
    f->addresses[0] = f->address;
    f->addresses[1] = "tls+tcp://127.0.0.1:0";
    if (lab) {
        f->lab_dir = mem_printf("%s/lab", f->scratch.dir);
        assert_int_equal(identity_create_lab(f->lab_dir, NULL), ERR_OK);
        assert_int_equal(identity_load(f->lab_dir, &f->lab, NULL), ERR_OK);
    }
    assert_int_equal(uv_loop_init(&f->loop), 0);
    start_server(f);
    dial(f);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, false);
}

static int setup_lab(void **state)
{
    return setup_with(state, true);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    stop_server(f);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    msg_fini(&f->reply);
    identity_fini(&f->lab);
    free(f->lab_dir);
    scratch_fini(&f->scratch);
    free(f);
    return 0;
}

static void on_reply(void *arg, enum err e, const struct msg *reply, const struct err_detail *d)
{
    struct fixture *f = arg;
    f->answered = true;
    f->err = e;
    msg_fini(&f->reply);
    msg_init(&f->reply, MSG_ANSWER);
    if (e == ERR_OK)
        msg_copy(&f->reply, reply);
    else
        f->detail = *d;
}

static enum err call(struct fixture *f, const struct msg *m)
{
    f->answered = false;
    assert_int_equal(link_client_call(f->client, m, LIMIT_NS, on_reply, f), ERR_OK);
    wait_flag(&f->loop, &f->answered, "an answer");
    return f->err;
}

static enum err ask(struct fixture *f, enum msg_ask_kind kind, const char *job, const char *arg,
                    uint64_t number)
{
    struct msg m;
    msg_init(&m, MSG_ASK);
    m.u.ask = (struct msg_ask){
        .kind = kind, .job = (char *)(uintptr_t)job, .arg = (char *)(uintptr_t)arg, .number = number};
    return call(f, &m);
}

static enum err submit_as(struct fixture *f, const char *job, const char *nonce, const char *text,
                          struct msg_file *file)
{
    struct msg m;
    msg_init(&m, MSG_SUBMIT);
    m.u.submit = (struct msg_submit){.job = (char *)(uintptr_t)job,
                                     .nonce = (char *)(uintptr_t)nonce,
                                     .experiment = (char *)(uintptr_t)text,
                                     .files = {.items = file, .count = file ? 1 : 0}};
    return call(f, &m);
}

static enum err submit(struct fixture *f, const char *job, const char *text, struct msg_file *file)
{
    return submit_as(f, job, "", text, file);
}

static enum err blob(struct fixture *f, const struct msg_file *file, uint64_t offset, const char *text,
                     size_t len)
{
    struct msg m;
    msg_init(&m, MSG_BLOB);
    memcpy(m.u.blob.hash, file->hash, MSG_HASH_BYTES);
    m.u.blob.offset = offset;
    m.u.blob.size_bytes = file->size_bytes;
    m.u.blob.data = (struct msg_bytes){.data = (uint8_t *)(uintptr_t)text, .len = len};
    return call(f, &m);
}

static enum err watch(struct fixture *f, const char *job)
{
    struct msg m;
    msg_init(&m, MSG_WATCH);
    m.u.watch.job = (char *)(uintptr_t)job;
    return call(f, &m);
}

/* Until the job is in that state; the store is behind the answer to CANCEL. */
static void await_state(struct fixture *f, const char *job, const char *wanted)
{
    uint64_t deadline = clock_now_ns() + LIMIT_NS;
    do {
        assert_true(clock_now_ns() < deadline);
        assert_int_equal(watch(f, job), ERR_OK);
    } while (strcmp(f->reply.u.watched.state, wanted) != 0);
}

/* A report reads the store, which has a job's end a moment after the loop knows of it. */
static void await_report(struct fixture *f, const char *job, const char *wanted)
{
    uint64_t deadline = clock_now_ns() + LIMIT_NS;
    do {
        if (clock_now_ns() >= deadline)
            fail_msg("no '%s' in: %s", wanted, f->reply.u.answer.text);
        assert_int_equal(ask(f, MSG_ASK_REPORT_TEXT, job, "", 0), ERR_OK);
    } while (strstr(f->reply.u.answer.text, wanted) == NULL);
}

static void test_a_job_from_files_to_cancel_and_resume(void **state)
{
    struct fixture *f = *state;
    struct msg_file file = {.path = (char *)(uintptr_t) "a", .size_bytes = 5, .mode = 0755};
    sha256_of("hello", 5, file.hash);
    assert_int_equal(submit(f, "j1", experiment_text, &file), ERR_OK);
    assert_int_equal(f->reply.u.submitted.missing.count, 1);
    assert_int_equal(watch(f, "j1"), ERR_NOT_FOUND); /* not before it is whole */
    assert_int_equal(blob(f, &file, 0, "hel", 3), ERR_OK);
    assert_int_equal(f->reply.u.blob_taken.have_bytes, 3);
    assert_int_equal(submit(f, "j1", experiment_text, &file), ERR_OK);
    assert_int_equal(f->reply.u.submitted.missing.items[0].have_bytes, 3);
    assert_int_equal(blob(f, &file, 4, "o", 1), ERR_INVALID); /* a gap */
    assert_int_equal(blob(f, &file, 3, "lo", 2), ERR_OK);
    assert_int_equal(submit(f, "j1", experiment_text, &file), ERR_OK);
    assert_int_equal(f->reply.u.submitted.missing.count, 0);
    /* Its answer may have been lost: the same again is fine, another one of the same name is not. */
    assert_int_equal(submit(f, "j1", experiment_text, &file), ERR_OK);
    assert_int_equal(ask(f, MSG_ASK_RESUME, "j1", "", 0), ERR_NOT_NOW);

    assert_int_equal(watch(f, "j1"), ERR_OK);
    assert_string_equal(f->reply.u.watched.state, "queued");
    assert_non_null(strstr(f->reply.u.watched.doing, "role 'server'"));
    assert_non_null(strstr(f->reply.u.watched.cause, "waiting for hosts: role 'server' needs 1 agent"));
    assert_int_equal(f->reply.u.watched.windows_total, 1);
    assert_int_equal(ask(f, MSG_ASK_STATUS, "j1", "", 0), ERR_OK);
    assert_non_null(strstr(f->reply.u.answer.text, "\"cause\": \"waiting for hosts: role 'server'"));
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "j1", "", 0), ERR_OK);
    await_state(f, "j1", "cancelled");
    assert_string_equal(f->reply.u.watched.cause, "cancelled by 'tester'");
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "j1", "", 0), ERR_NOT_NOW);
    assert_int_equal(ask(f, MSG_ASK_RESUME, "j1", "", 0), ERR_OK);
    await_state(f, "j1", "queued");

    /* A queued job outlives its controller. */
    hang_up(f);
    stop_server(f);
    start_server(f);
    dial(f);
    assert_int_equal(watch(f, "j1"), ERR_OK);
    assert_string_equal(f->reply.u.watched.state, "queued");
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "j1", "", 0), ERR_OK);
    await_state(f, "j1", "cancelled");
}

/* A file of `size` bytes, all of them `letter`, for the experiment above. */
static enum err submit_with(struct fixture *f, const char *job, char letter, size_t size)
{
    char text[BLOB_BYTES_MAX];
    memset(text, letter, size);
    struct msg_file file = {.path = (char *)(uintptr_t) "a", .size_bytes = size, .mode = 0755};
    sha256_of(text, size, file.hash);
    enum err e = submit(f, job, experiment_text, &file);
    if (e == ERR_OK && f->reply.u.submitted.missing.count != 0)
        e = blob(f, &file, 0, text, size);
    return e == ERR_OK ? submit(f, job, experiment_text, &file) : e;
}

/* Room for two of these files. */
static void test_files_of_jobs_to_come_stay_when_room_is_made(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(submit_with(f, "queued", 'q', 30), ERR_OK);
    assert_int_equal(submit_with(f, "stopped", 's', 30), ERR_OK);
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "stopped", "", 0), ERR_OK);
    await_state(f, "stopped", "cancelled");
    assert_int_equal(submit_with(f, "new", 'n', 30), ERR_OK); /* in place of what may be resumed */
    assert_int_equal(ask(f, MSG_ASK_RESUME, "stopped", "", 0), ERR_NOT_NOW);
    assert_non_null(strstr(f->detail.text,
                           "1 of the 1 files of job 'stopped' is no longer here, as the job had them (a)"));
    assert_int_equal(submit_with(f, "more", 'm', 30), ERR_FULL); /* both are queued */
    assert_non_null(strstr(f->detail.text, "need 90 bytes"));

    /* Another job brings it back, as soon as there is room. */
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "new", "", 0), ERR_OK);
    await_state(f, "new", "cancelled");
    assert_int_equal(submit_with(f, "again", 's', 30), ERR_OK);
    assert_int_equal(ask(f, MSG_ASK_RESUME, "stopped", "", 0), ERR_OK);
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "queued", "", 0), ERR_OK);
    await_state(f, "queued", "cancelled");
    assert_int_equal(ask(f, MSG_ASK_RESUME, "queued", "", 0), ERR_OK); /* its file was here all the time */
}

/* `count` attempts of the only window, each with a log of errors that fills a page. */
static void store_attempts(struct fixture *f, const char *job, unsigned count)
{
    struct store *s = NULL;
    char reason[LIMIT_TEXT_BYTES];
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    assert_int_equal(store_open(f->store_path, false, &s, NULL), ERR_OK);
    for (uint32_t i = 1; i <= count; i++) {
        struct store_attempt a = {.attempt = i, .gate = "errors", .reason = reason};
        assert_int_equal(store_add_attempt(s, job, &a, NULL), ERR_OK);
    }
    store_close(s);
}

static void test_a_long_report_comes_in_pieces(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(submit_with(f, "long", 'l', 30), ERR_OK);
    store_attempts(f, "long", 600); /* each more than 4 KB: more than two pieces */
    struct buf all;
    uint64_t total = 0;
    size_t pieces = 0;
    buf_init(&all, 16u * LIMIT_CHUNK_BYTES);
    do {
        struct msg m;
        msg_init(&m, MSG_ASK);
        m.u.ask = (struct msg_ask){
            .kind = MSG_ASK_REPORT_JSON, .job = (char *)(uintptr_t) "long", .offset = all.len};
        assert_int_equal(call(f, &m), ERR_OK);
        assert_int_equal(buf_append_text(&all, f->reply.u.answer.text), ERR_OK);
        total = f->reply.u.answer.total_bytes;
        pieces++;
    } while (all.len < total && pieces < 10);
    assert_int_equal(all.len, total);
    assert_int_equal(pieces, 3);
    struct json_value *tree = NULL;
    assert_int_equal(json_parse(all.data, all.len, NULL, &tree, NULL), ERR_OK);
    const struct json_value *cell = json_first(json_member(tree, "cells"));
    assert_int_equal(json_count(json_member(cell, "attempts")), 600);
    json_free(tree);
    buf_fini(&all);
}

static void test_another_experiment_of_the_same_id(void **state)
{
    struct fixture *f = *state;
    static const char other[] =
        "{ \"name\": \"other\", \"targets\": [ { \"name\": \"a\", \"start\": [\"a\"], \"port\": 8001 } ],"
        "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 1,"
        "                    \"duration\": \"2s\" } ] }";
    struct msg_file file = {.path = (char *)(uintptr_t) "a", .mode = 0644};
    sha256_of("", 0, file.hash);
    assert_int_equal(submit(f, "j1", experiment_text, &file), ERR_OK);
    assert_int_equal(f->reply.u.submitted.missing.count, 0); /* empty: nothing to send */
    assert_int_equal(submit(f, "j1", other, &file), ERR_EXISTS);
    assert_non_null(strstr(f->detail.text, "j1"));
}

/* Two operators drew the same id: the second must not be told that the first one's job is its own. */
static void test_another_submission_of_the_same_id_and_experiment(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(submit_as(f, "j1", "n1", experiment_text, NULL), ERR_OK);
    assert_int_equal(submit_as(f, "j1", "n1", experiment_text, NULL), ERR_OK); /* its answer was lost */
    assert_int_equal(submit_as(f, "j1", "n2", experiment_text, NULL), ERR_EXISTS);
    assert_int_equal(submit(f, "j1", experiment_text, NULL), ERR_EXISTS);
    /* Nor when the first one's was accepted by the controller before. */
    hang_up(f);
    stop_server(f);
    start_server(f);
    dial(f);
    assert_int_equal(submit_as(f, "j1", "n2", experiment_text, NULL), ERR_EXISTS);
    assert_int_equal(submit_as(f, "j1", "n1", experiment_text, NULL), ERR_OK);
    assert_int_equal(ask(f, MSG_ASK_STATUS, "", "", 0), ERR_OK);
    const char *first = strstr(f->reply.u.answer.text, "\"id\": \"j1\"");
    assert_non_null(first);
    assert_null(strstr(first + 1, "\"id\": "));
}

static void test_a_job_is_named_by_the_beginning_of_its_id(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(submit(f, "20261130-131943-7f3a", experiment_text, NULL), ERR_OK);
    assert_int_equal(submit(f, "20261130-131943-7f3b", experiment_text, NULL), ERR_OK);
    assert_int_equal(submit(f, "20261201", experiment_text, NULL), ERR_OK);
    assert_int_equal(submit(f, "20261201-1", experiment_text, NULL), ERR_OK);
    assert_int_equal(watch(f, "20261130-131943-7f3a"), ERR_OK);
    assert_string_equal(f->reply.u.watched.job, "20261130-131943-7f3a");
    assert_int_equal(watch(f, "20261201"), ERR_OK); /* whole, though another one begins so */
    assert_string_equal(f->reply.u.watched.job, "20261201");
    assert_int_equal(ask(f, MSG_ASK_STATUS, "20261201-", "", 0), ERR_OK);
    assert_non_null(strstr(f->reply.u.answer.text, "\"id\": \"20261201-1\""));
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "20261201-", "", 0), ERR_OK);
    assert_string_equal(f->reply.u.answer.text, "20261201-1");
    await_state(f, "20261201-1", "cancelled");
    await_report(f, "20261201-", "job 20261201-1, cancelled");
    assert_int_equal(ask(f, MSG_ASK_RESUME, "20261201-", "", 0), ERR_OK);
    assert_string_equal(f->reply.u.answer.text, "20261201-1");
    await_state(f, "20261201-1", "queued");
}

static void test_an_ambiguous_beginning_lists_the_candidates(void **state)
{
    struct fixture *f = *state;
    static const enum msg_ask_kind kinds[] = {MSG_ASK_STATUS, MSG_ASK_REPORT_TEXT, MSG_ASK_REPORT_JSON,
                                              MSG_ASK_RESUME, MSG_ASK_CANCEL};
    assert_int_equal(submit(f, "20261130-131943-7f3a", experiment_text, NULL), ERR_OK);
    assert_int_equal(submit(f, "20261130-131943-7f3b", experiment_text, NULL), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_int_equal(ask(f, kinds[i], "20261130", "", 0), ERR_INVALID);
        assert_non_null(strstr(f->detail.text, "20261130-131943-7f3a, 20261130-131943-7f3b; give more"));
    }
    assert_int_equal(watch(f, "20261130-131943-7f3"), ERR_INVALID);
    await_state(f, "20261130-131943-7f3a", "queued");
    await_state(f, "20261130-131943-7f3b", "queued");
}

static void test_what_is_refused(void **state)
{
    struct fixture *f = *state;
    struct msg_file file = {.path = (char *)(uintptr_t) "a", .size_bytes = 2};
    assert_int_equal(submit(f, "j1", "{}", NULL), ERR_INVALID);
    assert_non_null(strstr(f->detail.text, "not valid"));
    assert_int_equal(blob(f, &file, 0, "xy", 2), ERR_INVALID); /* not what the hash says */
    assert_int_equal(watch(f, "nobody"), ERR_NOT_FOUND);
    assert_int_equal(ask(f, MSG_ASK_RESUME, "nobody", "", 0), ERR_NOT_FOUND);
    assert_int_equal(ask(f, MSG_ASK_CANCEL, "nobody", "", 0), ERR_NOT_FOUND);
    assert_int_equal(ask(f, MSG_ASK_REPORT_TEXT, "", "", 0), ERR_NOT_FOUND);
    assert_int_equal(ask(f, MSG_ASK_TOKEN, "", "agent", NS_PER_S), ERR_UNSUPPORTED); /* no CA here */
    assert_int_equal(ask(f, MSG_ASK_REVOKE, "", "nobody", 0), ERR_NOT_FOUND);
    assert_true(f->up); /* none of it ends the session */
}

static void test_hosts_and_status_are_json(void **state)
{
    struct fixture *f = *state;
    struct json_value *v = NULL;
    const struct json_value *list = NULL;
    struct err_detail d;
    assert_int_equal(ask(f, MSG_ASK_HOSTS, "", "", 0), ERR_OK);
    assert_int_equal(json_parse(f->reply.u.answer.text, strlen(f->reply.u.answer.text), NULL, &v, &d),
                     ERR_OK);
    assert_int_equal(json_get_child(v, "hosts", JSON_ARRAY, &list, &d), ERR_OK);
    assert_int_equal(json_count(list), 0);
    json_free(v);
    assert_int_equal(ask(f, MSG_ASK_STATUS, "", "", 0), ERR_OK);
    assert_int_equal(json_parse(f->reply.u.answer.text, strlen(f->reply.u.answer.text), NULL, &v, &d),
                     ERR_OK);
    assert_int_equal(json_get_child(v, "jobs", JSON_ARRAY, &list, &d), ERR_OK);
    json_free(v);
}

/* ---- late results ---- */

#define FLOOD 7u /* results in a push: with 256 KiB each they fill a frame */

/* As an agent that has such results in its spool; the controller must let it drop them. */
static void push_late(struct fixture *f, const char *job, uint64_t first)
{
    char *raw = mem_alloc(256 * 1024 + 1);
    struct msg_event events[FLOOD];
    struct msg m;
    memset(raw, 'x', 256 * 1024);
    raw[256 * 1024] = '\0';
    memset(events, 0, sizeof events);
    for (size_t i = 0; i < FLOOD; i++) {
        events[i] =
            (struct msg_event){.number = first + i, .job = (char *)(uintptr_t)job, .kind = MSG_EVENT_LOADED};
        events[i].u.loaded.generator = (char *)(uintptr_t) "x";
        events[i].u.loaded.raw = raw;
    }
    msg_init(&m, MSG_PUSH);
    m.u.push = (struct msg_push){.incarnation = 77, .items = events, .count = FLOOD};
    assert_int_equal(call(f, &m), ERR_OK);
    assert_int_equal(f->reply.u.pushed.acked_event, first + FLOOD - 1);
    free(raw);
}

static uint64_t late_kept(struct store *s, const char *job)
{
    struct store_results r;
    assert_int_equal(store_read_results(s, job, &r, NULL), ERR_OK);
    uint64_t kept = r.late_events;
    store_results_fini(&r);
    return kept;
}

static void await_refused(struct fixture *f, struct store *s, const char *agent, uint64_t wanted)
{
    uint64_t deadline = clock_now_ns() + LIMIT_NS;
    uint64_t count = 0;
    while (count < wanted) {
        assert_true(clock_now_ns() < deadline);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_int_equal(store_refused_late(s, agent, &count, NULL), ERR_OK);
    }
    assert_int_equal(count, wanted);
}

static void test_late_results_of_jobs_that_an_agent_never_had_are_counted_only(void **state)
{
    struct fixture *f = *state;
    struct store *s = NULL;
    char *x = (char *)(uintptr_t) "x";
    const struct msg_host facts = {.hostname = x, .boot_id = x};
    const struct store_host part = {.role = "load", .agent = "evil", .facts = &facts};
    assert_int_equal(submit(f, "j1", experiment_text, NULL), ERR_OK);
    hang_up(f);
    dial_as(f, MSG_ROLE_AGENT, "evil");
    assert_int_equal(store_open(f->store_path, false, &s, NULL), ERR_OK);
    for (uint64_t i = 0; i < 10; i++)
        push_late(f, i % 2 == 0 ? "j1" : "made-up", 1 + i * FLOOD);
    await_refused(f, s, "evil", 10 * FLOOD);
    assert_int_equal(late_kept(s, "j1"), 0);
    assert_int_equal(store_put_host(s, "j1", &part, NULL), ERR_OK);
    push_late(f, "j1", 1001);
    assert_int_equal(late_kept(s, "j1"), FLOOD);
    await_refused(f, s, "evil", 10 * FLOOD);
    store_close(s);
}

/* ---- strangers over TLS -------------------------------------------------------------------------------- */

/* Runs the server until the raw peer can read, or was closed. */
static void await_readable(struct fixture *f, struct raw_peer *raw)
{
    uint64_t deadline = clock_now_ns() + LIMIT_NS;
    while (!raw_readable(raw, 1)) {
        assert_true(clock_now_ns() < deadline);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

static struct raw_peer *arrive(const struct fixture *f)
{
    struct raw_peer *raw = raw_open_tcp("127.0.0.1", strrchr(server_address(f->server, 1), ':') + 1);
    assert_non_null(raw);
    assert_true(raw_start_tls(raw, NULL) && raw_greet(raw));
    return raw;
}

static bool send_enroll(struct raw_peer *raw, uint32_t number, const char *secret, const char *name,
                        const char *csr)
{
    struct msg m;
    msg_init(&m, MSG_ENROLL);
    m.serial = number;
    m.u.enroll = (struct msg_enroll){.token = (char *)(uintptr_t)secret,
                                     .name = (char *)(uintptr_t)name,
                                     .role = MSG_ROLE_AGENT,
                                     .csr_pem = (char *)(uintptr_t)csr};
    return raw_send_msg(raw, number, &m);
}

/* One ENROLL on a connection of its own: the answer, to be finished. */
static void enroll(struct fixture *f, const char *secret, const char *name, const char *csr,
                   struct msg *answer)
{
    struct raw_peer *raw = arrive(f);
    assert_true(send_enroll(raw, 1, secret, name, csr));
    await_readable(f, raw);
    assert_int_equal(raw_receive(raw, answer, 5000), RAW_MESSAGE);
    raw_free(raw);
}

static void expect_enroll_refused(struct fixture *f, const char *secret, enum err code, const char *why)
{
    struct msg answer;
    enroll(f, secret, "eve", "not a request at all", &answer);
    assert_int_equal(answer.kind, MSG_REFUSED);
    assert_int_equal(answer.u.refused.code, code);
    if (strstr(answer.u.refused.text, why) == NULL)
        fail_msg("'%s' has no '%s'", answer.u.refused.text, why);
    msg_fini(&answer);
}

/* The secret of a token for an agent. */
static void make_token(struct fixture *f, char secret[64])
{
    uint8_t fingerprint[MSG_HASH_BYTES];
    assert_int_equal(ask(f, MSG_ASK_TOKEN, "", "agent", 60 * NS_PER_S), ERR_OK);
    assert_int_equal(identity_parse_token(f->reply.u.answer.text, secret, fingerprint, NULL), ERR_OK);
}

static void test_a_made_up_token_is_refused_before_its_request_is_looked_at(void **state)
{
    struct fixture *f = *state;
    char secret[64];
    make_token(f, secret);
    expect_enroll_refused(f, "AAAAAAAAAAAAAAAAAAAAAAAAAAA", ERR_DENIED, "unknown token");
    expect_enroll_refused(f, secret, ERR_INVALID, "request"); /* a good one's is, and does not use it up */
    char *key = NULL;
    char *csr = NULL;
    struct msg answer;
    assert_int_equal(identity_make_request("a1", &key, &csr, NULL), ERR_OK);
    enroll(f, secret, "a1", csr, &answer);
    assert_int_equal(answer.kind, MSG_ENROLLED);
    msg_fini(&answer);
    expect_enroll_refused(f, secret, ERR_DENIED, "the token was used");
    free(key);
    free(csr);
}

static void test_tokens_have_an_author_and_are_listed(void **state)
{
    struct fixture *f = *state;
    char secret[64];
    make_token(f, secret);
    assert_int_equal(ask(f, MSG_ASK_TOKEN, "", "list", 0), ERR_OK);
    assert_non_null(strstr(f->reply.u.answer.text, "\"state\": \"unused\""));
    assert_non_null(strstr(f->reply.u.answer.text, "\"made_by\": \"tester\""));
    assert_null(strstr(f->reply.u.answer.text, secret));
    /* Over ipc a name is no certificate's: this session goes on, and is told what happened. */
    assert_int_equal(ask(f, MSG_ASK_REVOKE, "", "tester", 0), ERR_OK);
    assert_string_equal(
        f->reply.u.answer.text,
        "tester never had a certificate; 1 unused token of its making cannot be used any more");
    assert_int_equal(ask(f, MSG_ASK_TOKEN, "", "list", 0), ERR_OK);
    assert_non_null(strstr(f->reply.u.answer.text, "\"state\": \"revoked\""));
    expect_enroll_refused(f, secret, ERR_DENIED, "tester, who made it, was revoked");
}

static void test_a_connection_has_one_wrong_token(void **state)
{
    struct fixture *f = *state;
    struct msg answer;
    struct raw_peer *raw = arrive(f);
    for (uint32_t i = 1; i <= 8; i++)
        assert_true(send_enroll(raw, i, "AAAAAAAAAAAAAAAAAAAAAAAAAAA", "eve", "x"));
    await_readable(f, raw);
    assert_int_equal(raw_receive(raw, &answer, 5000), RAW_MESSAGE);
    assert_int_equal(answer.kind, MSG_REFUSED);
    msg_fini(&answer);
    await_readable(f, raw);
    assert_int_equal(raw_receive(raw, &answer, 5000), RAW_CLOSED);
    raw_free(raw);
}

static void test_an_address_has_so_many_wrong_tokens(void **state)
{
    struct fixture *f = *state;
    char secret[64];
    for (unsigned i = 0; i < DOORSTEP_WRONG_MAX; i++)
        expect_enroll_refused(f, "AAAAAAAAAAAAAAAAAAAAAAAAAAA", ERR_DENIED, "unknown token");
    make_token(f, secret);
    expect_enroll_refused(f, secret, ERR_BUSY, "10 tokens from this address were refused");
}

#define TEST(f)     cmocka_unit_test_setup_teardown(f, setup, teardown)
#define LAB_TEST(f) cmocka_unit_test_setup_teardown(f, setup_lab, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_job_from_files_to_cancel_and_resume),
        TEST(test_files_of_jobs_to_come_stay_when_room_is_made),
        TEST(test_a_long_report_comes_in_pieces),
        TEST(test_another_experiment_of_the_same_id),
        TEST(test_another_submission_of_the_same_id_and_experiment),
        TEST(test_a_job_is_named_by_the_beginning_of_its_id),
        TEST(test_an_ambiguous_beginning_lists_the_candidates),
        TEST(test_what_is_refused),
        TEST(test_hosts_and_status_are_json),
        TEST(test_late_results_of_jobs_that_an_agent_never_had_are_counted_only),
        LAB_TEST(test_a_made_up_token_is_refused_before_its_request_is_looked_at),
        LAB_TEST(test_tokens_have_an_author_and_are_listed),
        LAB_TEST(test_a_connection_has_one_wrong_token),
        LAB_TEST(test_an_address_has_so_many_wrong_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
