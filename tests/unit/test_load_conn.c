#include "agent/load/conn_set.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/tls_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WHOLE "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define PART  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"

/* --- a connection without a network: the transport is the test's --- */

struct stand {
    struct transport transport;
    bool takes; /* what is sent leaves at once */
    int fd;     /* of the connection; -1: none */
    struct buf given;
    struct options options;
    struct target target;
    struct request_set requests;
    struct tls_wire *wire; /* the TLS server; NULL: plain HTTP */
    struct conn_set set;
};

static void stub_connect(struct transport *t, uint32_t slot, int fd, const struct sockaddr *addr,
                         socklen_t len)
{
    struct stand *s = t->owner;
    (void)slot;
    assert_int_equal(addr->sa_family, AF_INET);
    assert_int_equal(len, sizeof(struct sockaddr_in));
    assert_int_equal(s->fd, -1);
    s->fd = fd;
}

static bool stub_send(struct transport *t, uint32_t slot, const uint8_t *data, size_t len)
{
    struct stand *s = t->owner;
    (void)slot;
    assert_int_equal(buf_append(&s->given, data, len), ERR_OK);
    return s->takes;
}

static void stub_flush(struct transport *t, uint32_t slot)
{
    (void)t;
    (void)slot;
}

static void stub_close(struct transport *t, uint32_t slot)
{
    struct stand *s = t->owner;
    (void)slot;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static int stub_socket(const struct transport *t, uint32_t slot)
{
    const struct stand *s = t->owner;
    (void)slot;
    return s->fd;
}

static const struct transport_ops stub_ops = {.name = "stub",
                                              .connect = stub_connect,
                                              .send = stub_send,
                                              .flush = stub_flush,
                                              .close = stub_close,
                                              .socket = stub_socket};

static void stand_init(struct stand *s, struct tls_wire *wire)
{
    *s = (struct stand){.transport = {.ops = &stub_ops, .owner = s}, .takes = true, .fd = -1, .wire = wire};
    s->options = (struct options){.connections = 1, .threads = 1, .timeout_ns = NS_PER_S};
    expect_init(&s->options.expect);
    buf_init(&s->given, 1024u * 1024u);
    assert_int_equal(target_parse(&s->target, "http://127.0.0.1:9/", NULL, NULL), ERR_OK);
    assert_int_equal(target_resolve(&s->target, NS_PER_S, NULL), ERR_OK);
    assert_int_equal(request_set_build(&s->requests, &s->target, &s->options, NULL), ERR_OK);
    if (wire != NULL)
        tls_wire_dial(wire);
    struct share share = {
        .options = &s->options, .target = &s->target, .requests = &s->requests, .connections = 1};
    conn_set_init(&s->set, &share, &s->transport, wire != NULL ? wire->config : NULL);
    s->set.meter.now_ns = NS_PER_S;
}

static void stand_fini(struct stand *s)
{
    stub_close(&s->transport, 0);
    conn_set_fini(&s->set);
    request_set_fini(&s->requests);
    target_fini(&s->target);
    buf_fini(&s->given);
}

static struct conn *conn_of(struct stand *s)
{
    return &s->set.conns[0];
}

static const struct conn_input *input_of(const struct stand *s, enum conn_event event)
{
    static struct conn_input in;
    in = (struct conn_input){.at_ns = s->set.meter.now_ns};
    if (event == CONN_EVENT_FAILED)
        in.error = ECONNREFUSED;
    if (event == CONN_EVENT_SKIPPED)
        in.len = 2;
    const char *text = conn_of((struct stand *)(uintptr_t)s)->state == CONN_RECEIVING ? "lo" : WHOLE;
    if (event == CONN_EVENT_BYTES)
        in = (struct conn_input){.data = (const uint8_t *)text, .len = strlen(text)};
    return &in;
}

static void handle(struct stand *s, enum conn_event event)
{
    conn_handle(&s->set, conn_of(s), event, input_of(s, event));
}

static void hear(struct stand *s, const char *text)
{
    struct conn_input in = {.data = (const uint8_t *)text, .len = strlen(text)};
    conn_handle(&s->set, conn_of(s), CONN_EVENT_BYTES, &in);
}

/* As the worker does when a request is due: the connection is idle no more. */
static void send_one(struct stand *s)
{
    dispatch_withdraw(&s->set.dispatch, 0);
    s->set.meter.accounts->scheduled++;
    handle(s, CONN_EVENT_DUE);
}

/* The TLS server reads what it was sent, and what it has to say is received. */
static void serve(struct stand *s)
{
    struct tls_wire *w = s->wire;
    uint8_t bytes[16384];
    int n;
    while (s->given.len != 0 || BIO_ctrl_pending(w->from_server) != 0) {
        if (s->given.len != 0)
            assert_int_equal(BIO_write(w->to_server, s->given.data, (int)s->given.len), (int)s->given.len);
        buf_clear(&s->given);
        while (SSL_read(w->server, bytes, sizeof bytes) > 0) {
        }
        ERR_clear_error(); /* the server's, which are of the same thread here */
        while ((n = BIO_read(w->from_server, bytes, sizeof bytes)) > 0)
            conn_receive(&s->set, conn_of(s), bytes, (size_t)n);
    }
}

/* Brings a connection that has no request into a state, by what happens on the way there. */
static void reach(struct stand *s, enum conn_state state)
{
    static const enum conn_event way[] = {[CONN_CLOSED] = CONN_EVENT_START,
                                          [CONN_BACKOFF] = CONN_EVENT_EXPIRED,
                                          [CONN_CONNECTING] = CONN_EVENT_OPENED};
    while (conn_of(s)->state < ARRAY_LEN(way) && conn_of(s)->state != state)
        handle(s, way[conn_of(s)->state]);
    if (conn_of(s)->state != state && s->wire != NULL)
        serve(s);
    if (state > CONN_READY) {
        s->takes = state != CONN_SENDING;
        send_one(s);
    }
    if (state == CONN_RECEIVING)
        hear(s, PART);
    assert_int_equal(conn_of(s)->state, state);
}

/* What holds whatever happens. */
static void check(struct stand *s)
{
    const struct conn *c = conn_of(s);
    struct accounts *a = s->set.meter.accounts;
    assert_int_equal(s->set.meter.in_flight, c->state >= CONN_SENDING);
    assert_int_equal(s->set.dispatch.idle_count, c->state == CONN_READY);
    assert_int_equal(s->fd >= 0, c->state >= CONN_CONNECTING);
    assert_int_equal(c->deadline_ns == UINT64_MAX, c->state == CONN_CLOSED || c->state == CONN_READY);
    assert_int_equal(s->set.meter.public.untried, c->opens == 0 && c->failures == 0);
    assert_int_equal(s->set.meter.public.opened, c->opens != 0);
    assert_int_equal(a->reconnects, c->opens > 1 ? c->opens - 1 : 0);
    a->in_flight = s->set.meter.in_flight;
    assert_true(accounts_balanced(a));
}

/* --- every event in every state --- */

/* The next state by its letter, with TLS; a dot: refused. The connection is new, its server unproven. */
static const char letters[] = "CBOHRSWV";
static const struct {
    enum conn_event event;
    const char *next; /* of CLOSED BACKOFF cOnnecting HANDSHAKE READY SENDING WAITING receiVing */
} table[CONN_EVENT_COUNT] = {
    {CONN_EVENT_START, "B......."},   {CONN_EVENT_OPENED, "..H....."},  {CONN_EVENT_FAILED, "..B....."},
    {CONN_EVENT_DUE, "....W..."},     {CONN_EVENT_SENT, "...HRWWV"},    {CONN_EVENT_BYTES, "....BORR"},
    {CONN_EVENT_SKIPPED, ".....O.R"}, {CONN_EVENT_FED, "...HRSWV"},     {CONN_EVENT_BROKEN, "....BBBB"},
    {CONN_EVENT_ENDED, "...BBOOO"},   {CONN_EVENT_EXPIRED, ".OBB.OOO"}, {CONN_EVENT_CLOSE, "CCCCCCCC"},
};

static void expect_abort(struct stand *s, enum conn_event event)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)freopen("/dev/null", "w", stderr);
        (void)signal(SIGABRT, SIG_DFL);
        handle(s, event);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("event %d in state %d is not refused", event, conn_of(s)->state);
}

static void try_cell(struct tls_wire *wire, enum conn_state state, enum conn_event event, char next)
{
    struct stand s;
    stand_init(&s, wire);
    reach(&s, state);
    check(&s);
    if (next == '.') {
        expect_abort(&s, event);
    } else {
        if (event == CONN_EVENT_DUE)
            send_one(&s);
        else if (event == CONN_EVENT_SKIPPED && state == CONN_SENDING)
            hear(&s, PART);
        if (event != CONN_EVENT_DUE)
            handle(&s, event);
        if (letters[conn_of(&s)->state] != next)
            fail_msg("event %d in state %d leads to %c, not %c", event, state, letters[conn_of(&s)->state],
                     next);
        if (event != CONN_EVENT_CLOSE)
            check(&s);
    }
    stand_fini(&s);
}

static void test_every_event_in_every_state(void **state)
{
    tls_wire_show(*state, &(struct cert_wish){0});
    for (int from = 0; from < CONN_STATE_COUNT; from++)
        for (size_t i = 0; i < CONN_EVENT_COUNT; i++)
            try_cell(*state, (enum conn_state)from, table[i].event, table[i].next[from]);
}

/* The same without TLS, which has no hand-shake and no session that could be fed or broken. */
static void test_every_event_without_tls(void **unused)
{
    (void)unused;
    for (int from = 0; from < CONN_STATE_COUNT; from++)
        for (size_t i = 0; i < CONN_EVENT_COUNT; i++) {
            enum conn_event event = table[i].event;
            if (from != CONN_HANDSHAKE && event != CONN_EVENT_FED && event != CONN_EVENT_BROKEN)
                try_cell(NULL, (enum conn_state)from, event,
                         event == CONN_EVENT_OPENED && from == CONN_CONNECTING ? 'R' : table[i].next[from]);
        }
}

/* --- what depends on more than the state --- */

static void test_in_the_drain_nothing_is_opened_again(void **unused)
{
    (void)unused;
    for (int from = CONN_CONNECTING; from < CONN_STATE_COUNT; from++) {
        struct stand s;
        if (from == CONN_HANDSHAKE)
            continue;
        stand_init(&s, NULL);
        reach(&s, (enum conn_state)from);
        meter_enter(&s.set.meter, PHASE_DRAIN);
        handle(&s, from == CONN_CONNECTING ? CONN_EVENT_FAILED : CONN_EVENT_ENDED);
        assert_int_equal(conn_of(&s)->state, CONN_CLOSED);
        stand_fini(&s);
    }
}

/* A connection that was of use, or lasted, is replaced at once when the server ends it. */
static void test_only_useless_connections_wait_to_be_opened_again(void **unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct stand s;
        stand_init(&s, NULL);
        reach(&s, CONN_READY);
        if (i == 1) {
            send_one(&s);
            handle(&s, CONN_EVENT_BYTES);
        }
        if (i == 2)
            s.set.meter.now_ns += NS_PER_S;
        handle(&s, CONN_EVENT_ENDED);
        assert_int_equal(conn_of(&s)->state, i == 0 ? CONN_BACKOFF : CONN_CONNECTING);
        assert_int_equal(s.set.meter.accounts->idle_closes, 1);
        check(&s);
        reach(&s, CONN_READY);
        assert_int_equal(conn_of(&s)->opens, 2);
        check(&s);
        stand_fini(&s);
    }
}

/* Once the server has answered, what breaks is one request; before, it was no connection at all. */
static void test_a_broken_session_is_judged_by_what_the_server_had_proven(void **state)
{
    static const uint8_t nonsense[5 + 40] = {23, 3, 3, 0, 40};
    tls_wire_show(*state, &(struct cert_wish){0});
    for (int i = 0; i < 4; i++) {
        bool proven = i >= 2;
        bool in_request = i % 2 == 1;
        struct stand s;
        stand_init(&s, *state);
        reach(&s, CONN_READY);
        if (proven) {
            send_one(&s);
            assert_int_equal(SSL_write(s.wire->server, WHOLE, (int)strlen(WHOLE)), (int)strlen(WHOLE));
            serve(&s);
            assert_int_equal(conn_of(&s)->state, CONN_READY);
        }
        if (in_request)
            send_one(&s);
        conn_receive(&s.set, conn_of(&s), nonsense, sizeof nonsense);
        assert_int_equal(conn_of(&s)->state, proven ? CONN_CONNECTING : CONN_BACKOFF);
        const struct fault_table *f = &s.set.meter.tally->faults[PHASE_WARMUP];
        assert_int_equal(fault_total_of(f, FAULT_TLS), !proven);
        assert_int_equal(fault_total_of(f, FAULT_RECEIVE), proven && in_request);
        check(&s);
        stand_fini(&s);
    }
}

static void test_in_closed_loop_the_next_request_follows_the_answer(void **unused)
{
    (void)unused;
    struct stand s;
    stand_init(&s, NULL);
    reach(&s, CONN_READY);
    s.set.dispatch.loading = true;
    conn_set_send_due(&s.set);
    size_t one = s.given.len;
    for (unsigned i = 1; i < 5; i++) {
        assert_int_equal(conn_of(&s)->state, CONN_WAITING);
        assert_int_equal(s.given.len, i * one);
        check(&s);
        handle(&s, CONN_EVENT_BYTES);
    }
    assert_int_equal(s.set.meter.accounts->ok, 4);
    assert_int_equal(s.set.meter.accounts->wire_out, 4 * one);
    stand_fini(&s);
}

/* An answer may begin before its request has left; and what one connection still had to send is not the next
 * one's. */
static void test_a_request_that_is_not_taken_at_once(void **state)
{
    struct stand s;
    tls_wire_show(*state, &(struct cert_wish){0});
    stand_init(&s, *state);
    reach(&s, CONN_SENDING);
    handle(&s, CONN_EVENT_ENDED);
    buf_clear(&s.given);
    reach(&s, CONN_HANDSHAKE);
    assert_int_not_equal(s.given.len, 0); /* the new hand-shake does not wait for the old request */
    stand_fini(&s);
    stand_init(&s, NULL);
    reach(&s, CONN_SENDING);
    hear(&s, PART);
    assert_int_equal(conn_of(&s)->state, CONN_SENDING);
    handle(&s, CONN_EVENT_SENT);
    assert_int_equal(conn_of(&s)->state, CONN_RECEIVING);
    handle(&s, CONN_EVENT_BYTES);
    reach(&s, CONN_SENDING);
    handle(&s, CONN_EVENT_EXPIRED);
    reach(&s, CONN_WAITING);
    handle(&s, CONN_EVENT_BYTES);
    assert_int_equal(conn_of(&s)->state, CONN_READY);
    check(&s);
    stand_fini(&s);
}

/* Not before they have passed, and not more than once a millisecond. */
static void test_deadlines_are_swept(void **unused)
{
    (void)unused;
    struct stand s;
    stand_init(&s, NULL);
    struct meter *m = &s.set.meter;
    conn_set_start(&s.set);
    assert_int_equal(s.set.next_deadline_ns, m->now_ns);
    conn_set_sweep(&s.set);
    assert_int_equal(conn_of(&s)->state, CONN_CONNECTING);
    uint64_t deadline_ns = m->now_ns + s.options.timeout_ns;
    assert_int_equal(s.set.next_deadline_ns, deadline_ns);
    m->now_ns = deadline_ns - 1;
    conn_set_sweep(&s.set);
    assert_int_equal(conn_of(&s)->state, CONN_CONNECTING);
    assert_int_equal(s.set.next_deadline_ns, m->now_ns + NS_PER_MS);
    m->now_ns = deadline_ns;
    conn_set_sweep(&s.set);
    assert_int_equal(conn_of(&s)->state, CONN_BACKOFF);
    check(&s);
    conn_set_close(&s.set);
    assert_int_equal(conn_of(&s)->state, CONN_CLOSED);
    stand_fini(&s);
}

/* --- which connection is next --- */

#define SLOTS 5u

static void test_idle_connections_take_turns(void **unused)
{
    (void)unused;
    struct stand s;
    struct dispatch d;
    uint64_t due_ns = 0;
    uint32_t slot = 0;
    stand_init(&s, NULL);
    struct share share = s.set.share;
    share.connections = SLOTS;
    dispatch_init(&d, &share, &s.set.meter);
    for (uint32_t round = 0; round < SLOTS; round++) { /* the ring begins at another place each time */
        for (uint32_t i = 0; i < SLOTS; i++)
            assert_false(dispatch_claim(&d, i, &due_ns));
        dispatch_withdraw(&d, round);
        bool seen[SLOTS] = {false};
        d.loading = true;
        while (dispatch_match(&d, &slot, &due_ns)) {
            assert_false(seen[slot]);
            seen[slot] = true;
        }
        for (uint32_t i = 0; i < SLOTS; i++)
            assert_int_equal(seen[i], i != round);
        assert_true(dispatch_claim(&d, 3, &due_ns));
        d.loading = false;
        assert_false(dispatch_claim(&d, 3, &due_ns));
        dispatch_withdraw(&d, 3);
    }
    dispatch_fini(&d);
    stand_fini(&s);
}

/* In open loop a request that is due waits for the first connection that is free, and says so. */
static void test_what_is_due_waits_for_a_connection(void **unused)
{
    (void)unused;
    struct stand s;
    struct pacer_schedule schedule = {.count = 1, .stages = {{NS_PER_S, 10, 10}}};
    stand_init(&s, NULL);
    struct dispatch *d = &s.set.dispatch;
    uint64_t due_ns = 0;
    s.options.open_loop = true;
    d->loading = true;
    dispatch_follow(d, &schedule, 2 * NS_PER_S);
    assert_false(dispatch_take_waiting(d));
    assert_false(dispatch_claim(d, 0, &due_ns));
    assert_int_equal(dispatch_wake_ns(d), 2 * NS_PER_S);
    dispatch_withdraw(d, 0);
    assert_int_equal(dispatch_wake_ns(d), UINT64_MAX);
    s.set.meter.now_ns = 2 * NS_PER_S + NS_PER_MS;
    assert_true(dispatch_claim(d, 0, &due_ns));
    assert_int_equal(due_ns, 2 * NS_PER_S);
    s.set.meter.now_ns += 100 * NS_PER_MS;
    assert_true(dispatch_take_waiting(d));
    assert_false(dispatch_take_waiting(d));
    dispatch_give_up(d, 3 * NS_PER_S);
    assert_int_equal(s.set.meter.accounts->never_sent, 8);
    assert_int_equal(s.set.meter.accounts->scheduled, 10);
    stand_fini(&s);
}

/* --- what counts where --- */

static void test_a_value_counts_to_its_phase(void **unused)
{
    (void)unused;
    struct meter m;
    struct interval_box box;
    const struct meter_request r = {.index = 3, .intended_ns = 10, .sent_ns = 20};
    const struct fault late = {FAULT_WAIT, CAUSE_TIMEOUT, "late"};
    interval_box_init(&box);
    meter_init(&m, 1, true);
    m.now_ns = 50;
    for (int phase = PHASE_WARMUP; phase < PHASE_COUNT; phase++) {
        if (phase != PHASE_WARMUP)
            meter_enter(&m, (enum run_phase)phase);
        if (phase == PHASE_WINDOW) {
            meter_start_interval(&m, 0, 0);
            meter_fail_unsent(&m, &late);
            meter_end_interval(&m, 50, &box);
            meter_start_interval(&m, 1, 50);
        }
        for (int i = 0; i < 3; i++)
            meter_send(&m);
        meter_answer(&m, 200);
        meter_ok(&m, &r, 7);
        meter_answer(&m, 500);
        meter_refuse(&m, &r, &late);
        meter_fail(&m, &r, &late);
        meter_send(&m); /* and is carried into the next phase */
        meter_record(&m, TALLY_CONNECT, 1);
        if (phase == PHASE_WINDOW)
            meter_end_interval(&m, 100, &box);
    }
    struct interval *first = interval_box_take(&box);
    const struct interval *i = first->next;
    assert_true(first->failed == 1 && first->latency.count == 0 && first->end_ns == 50);
    assert_true(i->failed == 2 && i->latency.count == 1 && i->latency.max == 40 && i->end_ns == 100);
    interval_free_list(first);
    for (int h = 0; h < TALLY_HIST_COUNT; h++) {
        static const uint64_t counts[TALLY_HIST_COUNT] = {[TALLY_LATENCY] = 1,
                                                          [TALLY_SERVICE] = 1,
                                                          [TALLY_FAILED] = 1,
                                                          [TALLY_TIMEOUTS] = 1,
                                                          [TALLY_CONNECT] = PHASE_COUNT};
        assert_int_equal(m.tally->hists[h].count, counts[h]);
    }
    assert_int_equal(m.tally->hists[TALLY_SERVICE].max, 30);
    assert_int_equal(m.tally->status[200], 1);
    assert_true(m.tally->requests[3].ok == 1 && m.tally->requests[3].failed == 2);
    const struct accounts *a = m.tally->accounts;
    assert_true(a[PHASE_WARMUP].in_flight == 1 && a[PHASE_WINDOW].carried_in == 1);
    assert_true(a[PHASE_WINDOW].in_flight == 2 && a[PHASE_DRAIN].carried_in == 2);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        assert_true(a[phase].ok == 1 && a[phase].failed == 2 + (phase == PHASE_WINDOW) &&
                    a[phase].responses == 2 && a[phase].sent == 4 && a[phase].body_bytes == 7 &&
                    fault_total(&m.tally->faults[phase]) == a[phase].failed);
    meter_fini(&m);
    interval_box_fini(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_event_in_every_state, tls_wire_set_up, tls_wire_tear_down),
        cmocka_unit_test(test_every_event_without_tls),
        cmocka_unit_test(test_in_the_drain_nothing_is_opened_again),
        cmocka_unit_test(test_only_useless_connections_wait_to_be_opened_again),
        cmocka_unit_test_setup_teardown(test_a_broken_session_is_judged_by_what_the_server_had_proven,
                                        tls_wire_set_up, tls_wire_tear_down),
        cmocka_unit_test(test_in_closed_loop_the_next_request_follows_the_answer),
        cmocka_unit_test_setup_teardown(test_a_request_that_is_not_taken_at_once, tls_wire_set_up,
                                        tls_wire_tear_down),
        cmocka_unit_test(test_deadlines_are_swept),
        cmocka_unit_test(test_idle_connections_take_turns),
        cmocka_unit_test(test_what_is_due_waits_for_a_connection),
        cmocka_unit_test(test_a_value_counts_to_its_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
