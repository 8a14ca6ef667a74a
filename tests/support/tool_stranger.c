/*
 * What somebody who does not belong may try on a controller's TLS port. Each case ends with status 0 when the
 * controller refused it as it must, with 1 and a line that says what it did instead.
 *
 *   tool_stranger CASE HOST PORT [ARGUMENT...]
 */
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/raw_peer.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 15000

static const char *host;
static const char *port;

static int bad(const char *what, const char *detail)
{
    printf("NOT REFUSED: %s: %s\n", what, detail);
    return 1;
}

static int good(const char *what)
{
    printf("refused: %s\n", what);
    return 0;
}

/* A connection up to nng's greeting, as `id` (NULL: without a certificate). */
static struct raw_peer *arrive(const struct identity *id)
{
    struct raw_peer *p = raw_open_tcp(host, port);
    if (p != NULL && raw_start_tls(p, id) && raw_greet(p))
        return p;
    raw_free(p);
    return NULL;
}

static bool send_msg(struct raw_peer *p, const struct msg *m)
{
    static uint32_t number;
    return raw_send_msg(p, ++number, m);
}

/* The controller must answer nothing but REFUSED, and end the connection. */
static int expect_refusal(struct raw_peer *p, const char *what)
{
    char line[512];
    snprintf(line, sizeof line, "%s", what);
    for (;;) {
        struct msg m;
        enum raw_outcome outcome = raw_receive(p, &m, WAIT_MS);
        if (outcome == RAW_CLOSED)
            return good(line);
        if (outcome != RAW_MESSAGE)
            return bad(what, outcome == RAW_SILENT ? "the connection stays" : "an answer of garbage");
        if (m.kind != MSG_REFUSED) {
            int status = bad(what, msg_kind_name(m.kind));
            msg_fini(&m);
            return status;
        }
        snprintf(line, sizeof line, "%s: %s", what, m.u.refused.text);
        msg_fini(&m);
    }
}

static void make_hello(struct msg *m, const struct identity *id, enum msg_role role, const char *name)
{
    msg_init(m, MSG_HELLO);
    m->serial = 1;
    struct msg_hello *h = &m->u.hello;
    h->protocol = MSG_PROTOCOL_VERSION;
    h->build = mem_strdup("stranger");
    h->role = role;
    h->name = mem_strdup(name);
    h->certificate_pem = mem_strdup(id != NULL ? id->cert_pem : "");
    h->incarnation = 1;
    char **facts[] = {&h->host.hostname,  &h->host.boot_id,  &h->host.kernel,   &h->host.os,
                      &h->host.cpu_model, &h->host.cpu_list, &h->host.libraries};
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        *facts[i] = mem_strdup("x");
    h->host.cpus = 1;
}

static bool send_hello(struct raw_peer *p, const struct identity *id, enum msg_role role, const char *name)
{
    struct msg m;
    make_hello(&m, id, role, name);
    bool sent = send_msg(p, &m);
    msg_fini(&m);
    return sent;
}

static bool load_identity(const char *dir, struct identity *id)
{
    struct err_detail d = {""};
    if (identity_load(dir, id, &d) == ERR_OK)
        return true;
    fprintf(stderr, "%s\n", d.text);
    return false;
}

/* HELLO with `shown` over a connection made with `id`, answered with a proof by `id`'s key when asked. */
static int try_hello(const struct identity *id, const struct identity *shown, enum msg_role role,
                     const char *name, const char *what)
{
    struct raw_peer *p = arrive(id);
    if (p == NULL)
        return good(what); /* TLS itself did not let us in */
    int status = 1;
    struct msg m;
    struct err_detail d = {""};
    if (!send_hello(p, shown, role, name)) {
        status = bad(what, "cannot be sent");
    } else if (raw_receive(p, &m, WAIT_MS) == RAW_MESSAGE) {
        enum msg_kind kind = m.kind;
        struct msg proof;
        msg_init(&proof, MSG_PROOF);
        proof.serial = 2;
        if (kind == MSG_CHALLENGE && id != NULL &&
            identity_sign(id->key_pem, role, m.u.challenge.nonce, &proof.u.proof.signature, &d) == ERR_OK &&
            send_msg(p, &proof))
            status = expect_refusal(p, what);
        else if (kind == MSG_REFUSED) {
            char line[512];
            snprintf(line, sizeof line, "%s: %s", what, m.u.refused.text);
            status = expect_refusal(p, line);
        } else
            status = bad(what, msg_kind_name(kind));
        msg_fini(&proof);
        msg_fini(&m);
    } else
        status = good(what);
    raw_free(p);
    return status;
}

/* ---- the cases ----------------------------------------------------------------------------------------- */

/* Every kind of message before any HELLO, and a HELLO without a certificate. */
static int case_nobody(char **args)
{
    static const enum msg_kind kinds[] = {MSG_PROOF, MSG_POLL,  MSG_PUSH, MSG_SUBMIT,
                                          MSG_BLOB,  MSG_WATCH, MSG_ASK,  MSG_COMMANDS};
    (void)args;
    int status = try_hello(NULL, NULL, MSG_ROLE_AGENT, "nobody", "hello without a certificate");
    status |= try_hello(NULL, NULL, MSG_ROLE_OPERATOR, "nobody", "operator without a certificate");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct raw_peer *p = arrive(NULL);
        if (p == NULL)
            return bad("a stranger", "cannot even connect");
        struct msg m;
        msg_init(&m, kinds[i]);
        m.serial = 1;
        if (kinds[i] == MSG_SUBMIT) {
            m.u.submit.job = mem_strdup("job");
            m.u.submit.experiment = mem_strdup("{}");
        }
        if (kinds[i] == MSG_WATCH)
            m.u.watch.job = mem_strdup("job");
        char what[64];
        snprintf(what, sizeof what, "%s before hello", msg_kind_name(kinds[i]));
        status |= send_msg(p, &m) ? expect_refusal(p, what) : bad(what, "cannot be sent");
        msg_fini(&m);
        raw_free(p);
    }
    return status;
}

/* An identity signed by the CA in `lab`, valid for `life_ns`. */
static bool make_identity(const char *lab, const char *name, enum msg_role role, uint64_t life_ns,
                          struct identity *id)
{
    struct err_detail d = {""};
    struct identity lab_id;
    char *csr = NULL;
    if (identity_load(lab, &lab_id, &d) != ERR_OK ||
        identity_make_request(name, &id->key_pem, &csr, &d) != ERR_OK ||
        identity_sign_request(lab, csr, name, role, life_ns, &id->cert_pem, &d) != ERR_OK) {
        fprintf(stderr, "%s\n", d.text);
        return false;
    }
    id->ca_pem = mem_strdup(lab_id.ca_pem);
    identity_fini(&lab_id);
    free(csr);
    return true;
}

/* ARGS: NAME of a real agent. A whole lab of the stranger's own. */
static int case_foreign_ca(char **args)
{
    struct scratch scratch;
    struct err_detail d = {""};
    struct identity id = {0};
    scratch_init(&scratch);
    const char *dir = scratch.dir;
    if (identity_create_lab(dir, &d) != ERR_OK ||
        !make_identity(dir, args[0], MSG_ROLE_AGENT, 3600 * NS_PER_S, &id)) {
        fprintf(stderr, "cannot make a foreign lab: %s\n", d.text);
        return 2;
    }
    int status = try_hello(&id, &id, MSG_ROLE_AGENT, args[0], "foreign CA");
    identity_fini(&id);
    scratch_fini(&scratch);
    return status;
}

/* ARGS: directory of the lab's CA. A certificate of a second's life, after that second. */
static int case_expired(char **args)
{
    struct identity id = {0};
    struct identity_facts facts;
    struct err_detail d = {""};
    if (!make_identity(args[0], "late", MSG_ROLE_AGENT, NS_PER_S, &id))
        return 2;
    while (identity_check_certificate(id.ca_pem, id.cert_pem, &facts, &d) == ERR_OK)
        poll(NULL, 0, 100);
    int status = try_hello(&id, &id, MSG_ROLE_AGENT, "late", "expired");
    identity_fini(&id);
    return status;
}

/* ARGS: identity of an enrolled agent, identity of another one. */
static int case_posing(char **args)
{
    struct identity own;
    struct identity other;
    if (!load_identity(args[0], &own) || !load_identity(args[1], &other))
        return 2;
    struct identity_facts facts;
    struct err_detail d = {""};
    if (identity_check_certificate(other.ca_pem, other.cert_pem, &facts, &d) != ERR_OK)
        return 2;
    int status = try_hello(&own, &own, MSG_ROLE_AGENT, facts.name, "own certificate, another's name");
    status |= try_hello(&own, &other, MSG_ROLE_AGENT, facts.name, "another's certificate, own key");
    status |= try_hello(&own, &own, MSG_ROLE_OPERATOR, "eve", "an agent as an operator");
    identity_fini(&own);
    identity_fini(&other);
    return status;
}

/* A header that promises a gigabyte, one byte more than the cap, and the largest number there is. */
static int case_giant(char **args)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 30, LIMIT_FRAME_BYTES + 5, UINT64_MAX};
    (void)args;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char what[64];
        snprintf(what, sizeof what, "a frame said to have %llu bytes", (unsigned long long)sizes[i]);
        struct raw_peer *p = arrive(NULL);
        if (p == NULL)
            return bad(what, "cannot even connect");
        status |= raw_send_frame(p, sizes[i], "xxxx", 4) ? expect_refusal(p, what) : good(what);
        raw_free(p);
    }
    return status;
}

static void fill_random(uint8_t *p, size_t len)
{
    identity_random(p, len);
}

/* ARGS: how often. Noise in place of TLS, of the greeting, of a message; a message cut short, with a byte
 * wrong. */
static int case_random(char **args)
{
    long count = strtol(args[0], NULL, 10);
    int status = 0;
    for (long i = 0; i < count; i++) {
        uint8_t noise[4096];
        fill_random(noise, sizeof noise);
        size_t len = 1 + noise[0] * 15u;
        long kind = i % 4;
        struct raw_peer *p = kind <= 1 ? raw_open_tcp(host, port) : arrive(NULL);
        if (p == NULL || (kind == 1 && !raw_start_tls(p, NULL)))
            return bad("random bytes", "the controller does not answer any more");
        if (kind == 2)
            noise[0] |= 0x80; /* a request's number, so that the rest reaches the decoder */
        if (kind == 3) {
            struct msg m;
            make_hello(&m, NULL, MSG_ROLE_AGENT, "noise");
            m.session = (uint64_t)i; /* of nobody */
            (void)send_msg(p, &m);
            msg_fini(&m);
        } else if (kind == 2)
            (void)raw_send_frame(p, len, noise, len);
        else
            (void)raw_send(p, noise, sizeof noise);
        if (kind == 0)
            raw_end_sending(p); /* TLS waits for the rest of a record that never comes */
        struct msg m;
        enum raw_outcome outcome = raw_receive(p, &m, WAIT_MS);
        if (outcome == RAW_MESSAGE) {
            if (m.kind != MSG_REFUSED)
                status |= bad("random bytes", msg_kind_name(m.kind));
            msg_fini(&m);
        } else if (outcome == RAW_SILENT)
            status |= bad("random bytes", "the connection stays");
        raw_free(p);
    }
    return status != 0 ? status : good("random bytes");
}

/* Connects and proves `id`; the session's number, or 0. The caller frees the peer either way. */
static uint64_t open_session(struct raw_peer **out, const struct identity *id, const char *name)
{
    struct msg m;
    struct err_detail d = {""};
    struct raw_peer *p = *out = arrive(id);
    if (p == NULL || !send_hello(p, id, MSG_ROLE_AGENT, name) || raw_receive(p, &m, WAIT_MS) != RAW_MESSAGE)
        return 0;
    struct msg proof;
    msg_init(&proof, MSG_PROOF);
    proof.serial = 1;
    bool sent = m.kind == MSG_CHALLENGE &&
                identity_sign(id->key_pem, MSG_ROLE_AGENT, m.u.challenge.nonce, &proof.u.proof.signature,
                              &d) == ERR_OK &&
                send_msg(p, &proof);
    msg_fini(&proof);
    msg_fini(&m);
    if (!sent || raw_receive(p, &m, WAIT_MS) != RAW_MESSAGE)
        return 0;
    uint64_t session = m.kind == MSG_WELCOME ? m.u.welcome.session : 0;
    if (session == 0)
        printf("no session: %s\n", msg_kind_name(m.kind));
    msg_fini(&m);
    return session;
}

static bool send_push(struct raw_peer *p, uint64_t session, uint64_t serial)
{
    struct msg m;
    msg_init(&m, MSG_PUSH);
    m.session = session;
    m.serial = serial;
    m.u.push.incarnation = 1;
    m.u.push.items = mem_zalloc(1, sizeof *m.u.push.items);
    m.u.push.count = 1;
    m.u.push.items[0] = (struct msg_event){
        .number = 1, .job = mem_strdup("no-such-job"), .kind = MSG_EVENT_DONE, .text = NULL};
    bool sent = send_msg(p, &m);
    msg_fini(&m);
    return sent;
}

/* ARGS: identity of an enrolled agent, its name. A message said twice; one of an earlier session; one with
 * the number of a session that is somebody else's. */
static int case_replay(char **args)
{
    struct identity id;
    if (!load_identity(args[0], &id))
        return 2;
    struct raw_peer *p = NULL;
    struct msg m;
    uint64_t first = open_session(&p, &id, args[1]);
    if (first == 0)
        return bad("replay", "no session to begin with");
    if (!send_push(p, first, 7) || raw_receive(p, &m, WAIT_MS) != RAW_MESSAGE)
        return bad("replay", "the first push is not answered");
    if (m.kind != MSG_PUSHED && m.kind != MSG_REFUSED)
        return bad("replay", msg_kind_name(m.kind));
    msg_fini(&m);
    int status = send_push(p, first, 7) ? expect_refusal(p, "the same message again") : 0;
    raw_free(p);

    uint64_t second = open_session(&p, &id, args[1]);
    if (second == 0 || second == first)
        return bad("replay", "no second session");
    status |= send_push(p, first, 8) ? expect_refusal(p, "a message of an earlier session") : 0;
    raw_free(p);

    p = arrive(NULL);
    if (p != NULL)
        status |= send_push(p, second, 9) ? expect_refusal(p, "a session's number without the session") : 0;
    raw_free(p);
    identity_fini(&id);
    return status;
}

/* ARGS: how often, identity of an enrolled agent, its name. Comes and goes at every point on the way in; then
 * the controller must still let one in who belongs. */
static int case_hit_and_run(char **args)
{
    long count = strtol(args[0], NULL, 10);
    struct identity id;
    struct raw_peer *p = NULL;
    if (!load_identity(args[1], &id))
        return 2;
    for (long i = 0; i < count; i++) {
        p = raw_open_tcp(host, port);
        if (p == NULL)
            return bad("hit and run", "the controller does not listen any more");
        bool there = true;
        if (i % 6 >= 2)
            there = raw_start_tls(p, i % 12 >= 6 ? &id : NULL);
        if (there && i % 6 >= 4)
            (void)raw_send(p, "\0SP", i % 6 == 4 ? 3 : 1);
        if (i % 2 == 0)
            raw_reset(p);
        else
            raw_free(p);
    }
    bool in = open_session(&p, &id, args[2]) != 0;
    raw_free(p);
    identity_fini(&id);
    return in ? good("hit and run") : bad("hit and run", "nobody gets in any more");
}

/* ARGS: identity of an agent, its name. Stays connected until the controller ends it. */
static int case_stay(char **args)
{
    struct identity id;
    struct raw_peer *p = NULL;
    if (!load_identity(args[0], &id))
        return 2;
    uint64_t session = open_session(&p, &id, args[1]);
    if (session == 0)
        return bad("stay", "no session to begin with");
    puts("connected");
    fflush(stdout);
    int status = expect_refusal(p, "a live connection");
    raw_free(p);
    identity_fini(&id);
    return status;
}

/* Eight ENROLLs at once, each with a token that nobody made and a request that could be signed. */
static void send_guesses(struct raw_peer *p, char *csr)
{
    for (uint64_t i = 1; i <= 8; i++) {
        struct msg m;
        msg_init(&m, MSG_ENROLL);
        m.serial = i;
        m.u.enroll = (struct msg_enroll){.token = (char *)(uintptr_t) "AAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                         .name = (char *)(uintptr_t) "nobody",
                                         .role = MSG_ROLE_AGENT,
                                         .csr_pem = csr};
        (void)send_msg(p, &m); /* it may have been closed */
    }
}

/* ARGS: how many connections, how often. All are there before the first one guesses. */
static int case_guess(char **args)
{
    size_t count = (size_t)strtol(args[0], NULL, 10);
    char *key = NULL;
    char *csr = NULL;
    struct err_detail d = {""};
    if (identity_make_request("nobody", &key, &csr, &d) != ERR_OK)
        return bad("guesses", d.text);
    struct raw_peer **peers = mem_zalloc(count, sizeof *peers);
    int status = 0;
    for (long round = strtol(args[1], NULL, 10); round > 0; round--) {
        for (size_t i = 0; i < count; i++)
            peers[i] = arrive(NULL);
        puts("guessing");
        fflush(stdout);
        for (size_t i = 0; i < count; i++)
            if (peers[i] != NULL)
                send_guesses(peers[i], csr);
        for (size_t i = 0; i < count; i++) {
            status |= peers[i] != NULL ? expect_refusal(peers[i], "a guess") : 0;
            raw_free(peers[i]);
        }
    }
    free(peers);
    free(key);
    free(csr);
    return status;
}

/* ARGS: how many. Half say nothing, half begin a TLS record; all stay until standard input ends. */
static int case_half_open(char **args)
{
    long count = strtol(args[0], NULL, 10);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    long open_count = 0;
    struct raw_peer **peers = mem_zalloc((size_t)count, sizeof(struct raw_peer *));
    while (open_count < count && (peers[open_count] = raw_open_tcp(host, port)) != NULL) {
        if (open_count % 2 == 1)
            (void)raw_send(peers[open_count], "\x16\x03\x01\x02", 4);
        open_count++;
    }
    printf("open %ld\n", open_count);
    fflush(stdout);
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
    long closed = 0;
    for (long i = 0; i < open_count; i++) {
        closed += raw_closed(peers[i]);
        raw_free(peers[i]);
    }
    free(peers);
    printf("closed by the controller %ld\n", closed);
    return open_count == count ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int argc;
        int (*run)(char **args);
    } cases[] = {
        {"nobody", 0, case_nobody},       {"foreign-ca", 1, case_foreign_ca},
        {"expired", 1, case_expired},     {"posing", 2, case_posing},
        {"giant", 0, case_giant},         {"random", 1, case_random},
        {"replay", 2, case_replay},       {"stay", 2, case_stay},
        {"half-open", 1, case_half_open}, {"hit-and-run", 3, case_hit_and_run},
        {"guess", 2, case_guess},
    };
    for (size_t i = 0; argc >= 4 && i < ARRAY_LEN(cases); i++) {
        if (strcmp(argv[1], cases[i].name) != 0 || argc != 4 + cases[i].argc)
            continue;
        host = argv[2];
        port = argv[3];
        return cases[i].run(argv + 4);
    }
    fprintf(stderr, "usage: tool_stranger CASE HOST PORT [ARGUMENT...]\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        fprintf(stderr, "  %s (%d arguments)\n", cases[i].name, cases[i].argc);
    return 2;
}
