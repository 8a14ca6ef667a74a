#ifndef TESTS_SUPPORT_LAB_H
#define TESTS_SUPPORT_LAB_H
/*
 * A laboratory for link tests: a directory with a CA, a server on ipc and TLS that answers polls and pushes,
 * clients, and a loop that runs until something has happened or a limit passes (tests/support/wait.h). One
 * thread.
 */
#include "proto/link/link.h"
#include "tests/support/scratch.h"

struct lab_client {
    struct lab *lab;
    struct link_client *link;
    struct identity identity;
    int ups;
    int downs;
    bool final;
    enum err down_code;
    char down_why[256];
    int answers; /* calls that ended well */
    int failures;
    enum err last_code;
    enum msg_kind last_kind;
    char last_text[1024];
    uint64_t session;
};

struct lab {
    uv_loop_t loop;
    struct scratch scratch;
    char ca_dir[96];
    char ipc[128];
    struct identity identity;
    struct link_server *server;
    struct link_peer *peer; /* the last one that came up */
    int hellos;
    int gone;
    int refused;
    char refused_why[256];
    int requests;
    int enrolled;
    enum err hello_code;  /* what on_hello answers */
    enum err enroll_code; /* what on_enroll answers */
    char enroll_dir[96];
    char tls_address[64];        /* the port stays the same when the server is started again */
    uint64_t connect_timeout_ns; /* of clients to come */
    bool hold;                   /* keep requests instead of answering */
    struct link_request *held[64];
    int held_count;
    int closing;
};

/* With ipc and, when `tls`, an address on a free port of the loopback. */
void lab_init(struct lab *lab, bool tls);
/* With the CA and the controller of the lab from before OpenSSL. */
void lab_init_old(struct lab *lab);
void lab_fini(struct lab *lab);

void lab_stop_server(struct lab *lab);
void lab_start_server(struct lab *lab);

/* link_enroll on a thread of its own, with a good token or this one. Stores in lab->enroll_dir. */
enum err lab_enroll(struct lab *lab, const char *name, const char *token, struct err_detail *d);

/* Runs the loop until `*counter` is at least `value`; fails the test after WAIT_NS. */
void lab_wait_at(struct lab *lab, const int *counter, int value, const char *file, int line);
#define lab_wait(lab, counter, value) lab_wait_at(lab, counter, value, __FILE__, __LINE__)

const char *lab_tls_address(const struct lab *lab);

/* An identity signed by the lab's CA. */
void lab_make_identity(struct lab *lab, const char *name, enum msg_role role, struct identity *out);

/* `identity` may be NULL (ipc); it is copied. The client is counted, not waited for. */
void lab_connect(struct lab *lab, struct lab_client *c, const char *address, const struct identity *identity,
                 enum msg_role role, const char *name);
void lab_disconnect(struct lab_client *c);

/* Asks; the answer is counted in the client. Returns what link_client_call did. */
enum err lab_call(struct lab_client *c, const struct msg *m, uint64_t timeout_ns);

/* Asks; the answer is counted in the client. */
void lab_poll(struct lab_client *c);

#endif
