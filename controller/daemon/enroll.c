/* Strangers with a token become agents or operators; tokens are made here, too. */
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/sha256.h"
#include "controller/daemon/server_inner.h"

#define TOKEN_LIFE_MAX_NS (UINT64_C(30) * 86400 * NS_PER_S)

struct enrollment {
    struct server *server;
    struct link_request *request;
    uint64_t network; /* where it comes from */
    uint8_t token[MSG_HASH_BYTES];
    char *name;
    char *csr_pem;
    enum msg_role role;
    char *certificate_pem; /* the result */
    enum err err;
    struct err_detail detail;
};

static void hash_secret(const char *secret, uint8_t out[MSG_HASH_BYTES])
{
    sha256_of(secret, strlen(secret), out);
}

/* The token was good a moment ago. Signed first, so that a bad request does not use it up; given away only
 * when it is good still. */
static enum err enroll(struct enrollment *e, struct store *store, struct err_detail *d)
{
    struct server *s = e->server;
    struct identity_facts facts;
    enum err r = identity_sign_request(s->o.identity_dir, e->csr_pem, e->name, e->role, SERVER_CERTIFICATE_NS,
                                       &e->certificate_pem, d);
    if (r != ERR_OK)
        return r;
    r = identity_check_certificate(s->o.identity->ca_pem, e->certificate_pem, &facts, d);
    if (r != ERR_OK)
        return r;
    r = store_use_token(store, e->token, e->name, e->role, d);
    if (r != ERR_OK)
        return r;
    return store_add_certificate(store, facts.serial, e->name, e->role, d);
}

static void work_enroll(struct store *store, void *arg)
{
    struct enrollment *e = arg;
    e->err = enroll(e, store, &e->detail);
}

static void leave(struct server *s, uint64_t network, enum err e)
{
    if (doorstep_leave(s->doorstep, network, e == ERR_DENIED, clock_now_ns()))
        log_warn("strangers_barred", "network=%016llx why=\"%u wrong tokens\"", (unsigned long long)network,
                 DOORSTEP_WRONG_MAX);
}

static void on_enrolled(void *arg)
{
    struct enrollment *e = arg;
    leave(e->server, e->network, e->err);
    if (e->err == ERR_OK) {
        struct msg m;
        msg_init(&m, MSG_ENROLLED);
        m.u.enrolled.certificate_pem = e->certificate_pem;
        log_info("enrolled", "name=%s role=%s", e->name, msg_role_name(e->role));
        if (e->role == MSG_ROLE_AGENT) {
            char *cause = mem_printf("agent '%s' was enrolled anew, which ended its session", e->name);
            fleet_revoke(e->server->fleet, e->name, cause);
            free(cause);
        }
        server_drop_peers(e->server, e->name, "a newer certificate took its place", 0);
        link_answer(&e->request, &m);
    } else {
        log_warn("enrollment_refused", "name=%s why=\"%s\"", e->name, e->detail.text);
        link_refuse(&e->request, e->err, "%s", e->detail.text);
    }
    free(e->name);
    free(e->csr_pem);
    free(e->certificate_pem);
    free(e);
}

/* What costs next to nothing to look at. */
static enum err check_request(const struct server *s, const struct msg_enroll *m, struct err_detail *d)
{
    if (s->o.identity == NULL)
        return err_set(d, ERR_UNSUPPORTED, "this controller has no CA: it serves one machine over ipc");
    if (m->role != MSG_ROLE_AGENT && m->role != MSG_ROLE_OPERATOR)
        return err_set(d, ERR_INVALID, "only agents and operators are enrolled");
    return path_check_name("name", msg_text(m->name), d);
}

/* One row of the store, on the loop: whoever has no token costs us no more than that. */
static enum err check_token(struct server *s, const struct msg_enroll *m, uint64_t network,
                            uint8_t token[MSG_HASH_BYTES], struct err_detail *d)
{
    enum err e = doorstep_enter(s->doorstep, network, clock_now_ns(), d);
    if (e != ERR_OK) /* not logged: there may be thousands */
        return e;
    hash_secret(msg_text(m->token), token);
    e = store_check_token(s->store, token, m->role, d);
    if (e == ERR_OK)
        return e;
    log_warn("enrollment_refused", "name=%s why=\"%s\"", msg_text(m->name), d->text);
    leave(s, network, e);
    return e;
}

void server_enroll(struct server *s, const struct msg_enroll *m, struct link_request *request)
{
    struct err_detail d;
    uint8_t token[MSG_HASH_BYTES];
    uint64_t network = link_request_network(request);
    enum err r = check_request(s, m, &d);
    if (r == ERR_OK)
        r = check_token(s, m, network, token, &d);
    if (r != ERR_OK) {
        link_refuse(&request, r, "%s", d.text);
        return;
    }
    struct enrollment *e = mem_zalloc(1, sizeof *e);
    e->server = s;
    e->request = request;
    e->network = network;
    memcpy(e->token, token, sizeof e->token);
    e->name = mem_strdup(m->name);
    e->csr_pem = mem_strdup(msg_text(m->csr_pem));
    e->role = m->role;
    store_worker_do(s->worker, work_enroll, on_enrolled, e);
}

enum err server_make_token(struct server *s, struct store *store, const char *who, const char *role,
                           uint64_t life_ns, char **text, struct err_detail *d)
{
    char token[IDENTITY_TOKEN_BYTES_MAX], secret[64];
    uint8_t hash[MSG_HASH_BYTES];
    enum msg_role wanted = strcmp(role, "agent") == 0      ? MSG_ROLE_AGENT
                           : strcmp(role, "operator") == 0 ? MSG_ROLE_OPERATOR
                                                           : MSG_ROLE_NONE;
    if (s->o.identity == NULL)
        return err_set(
            d, ERR_UNSUPPORTED,
            "this controller has no CA; `splitbench controller init` makes one, then start it with it");
    if (wanted == MSG_ROLE_NONE)
        return err_set(d, ERR_INVALID, "a token is for an 'agent' or an 'operator', not for '%.32s'", role);
    if (life_ns == 0 || life_ns > TOKEN_LIFE_MAX_NS)
        return err_set(d, ERR_INVALID, "a token lives for up to 30 days, and longer than not at all");
    enum err e = identity_make_token(s->o.identity->ca_pem, token, secret, d);
    if (e != ERR_OK)
        return e;
    hash_secret(secret, hash);
    e = store_add_token(store, hash, wanted, who, clock_wall_ns() + life_ns, d);
    if (e == ERR_OK)
        *text = mem_strdup(token);
    return e;
}
