#ifndef CONTROLLER_CLI_CLIENT_H
#define CONTROLLER_CLI_CLIENT_H
/*
 * An operator's connection to a controller, as blocking calls: it owns a private loop that turns only inside
 * them. Owned by the subcommand; main thread only.
 */
#include "common/buf.h"
#include "controller/cli/place.h"
#include "proto/msg/msg.h"

struct client;

/* Connects and proves who we are; the error says which address and what to do. */
NODISCARD enum err client_open(const struct place *place, struct client **out, struct err_detail *d);
void client_close(struct client **client);

/* Who the controller takes us for: the certificate's name, or over ipc the login name. Until client_close. */
const char *client_name(const struct client *client);

/* Asked again and again while the controller is away: an error ends the wait for it at once and is what the
 * call returns. Without it a controller that went is waited for, it may be starting anew. */
typedef enum err client_check(void *arg, struct err_detail *d);
void client_set_check(struct client *client, client_check *check, void *arg);

/* One request. `take` sees the answer (borrowed). Survives one reconnection when the request may be repeated:
 * every operator request may. */
typedef void client_take(void *arg, const struct msg *reply);
NODISCARD enum err client_call(struct client *client, const struct msg *m, uint64_t timeout_ns,
                               client_take *take, void *arg, struct err_detail *d);

/* An ASK whose text answer is as long as it is: `piece` sees it as it comes, in whole characters, and may end
 * it with an error. */
struct client_ask {
    enum msg_ask_kind kind;
    const char *job;
    const char *arg;
    uint64_t number;
};
typedef enum err client_piece(void *arg, const char *data, size_t len, struct err_detail *d);
NODISCARD enum err client_ask_pieces(struct client *client, const struct client_ask *ask, client_piece *piece,
                                     void *arg, struct err_detail *d);
/* The same, collected. */
NODISCARD enum err client_ask(struct client *client, const struct client_ask *ask, struct buf *out,
                              struct err_detail *d);
/* The same over a connection of its own. */
NODISCARD enum err client_ask_once(const struct place *place, const struct client_ask *ask, struct buf *out,
                                   struct err_detail *d);

/* Whom this machine takes us for, as whoever has no certificate. */
const char *client_login_name(void);

#endif
