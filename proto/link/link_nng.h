#ifndef PROTO_LINK_LINK_NNG_H
#define PROTO_LINK_LINK_NNG_H
/*
 * What the two ends share of nng: addresses, error codes, TLS configurations, frames. Any thread; no state.
 * For proto/link/ only.
 */
#include "proto/identity/identity.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

#define LINK_IPC "ipc://"
#define LINK_TLS "tls+tcp://"

/* nng counts its own four bytes of request number into a frame. */
#define LINK_RECV_BYTES_MAX (LIMIT_FRAME_BYTES + 4u)

/* ERR_INVALID unless it begins with ipc:///PATH or tls+tcp://HOST:PORT. */
NODISCARD enum err link_check_address(const char *address, struct err_detail *d);
bool link_is_ipc(const char *address);

/* Our code for an nng one. */
enum err link_err(int nng_code);

/* Why dialling `address` failed, for a person. Returns the code. */
enum err link_dial_err(int nng_code, const char *address, struct err_detail *d);

/* The controller's end: shows its certificate, asks for the peer's but lets strangers in to enroll. */
NODISCARD enum err link_tls_server(const struct identity *id, nng_tls_config **out, struct err_detail *d);

/* A client's end: the controller's certificate is verified against `ca_pem` and its fixed name. Own
 * certificate and key may be NULL (enrollment). With `ca_pem` NULL nothing is verified: only for reading the
 * CA that the token's fingerprint then checks. */
NODISCARD enum err link_tls_client(const char *ca_pem, const char *cert_pem, const char *key_pem,
                                   nng_tls_config **out, struct err_detail *d);

/* A REQ socket with a dialer that has not started; receive cap set, nothing re-sent by nng itself. `tls` is
 * NULL over ipc. */
NODISCARD enum err link_open_client(const char *address, nng_tls_config *tls, nng_socket *socket,
                                    nng_dialer *dialer, struct err_detail *d);

/* A new nng message that holds the encoded frame. */
NODISCARD enum err link_pack(const struct msg *m, nng_msg **out, struct err_detail *d);

#endif
