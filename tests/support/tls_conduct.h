#ifndef TESTS_SUPPORT_TLS_CONDUCT_H
#define TESTS_SUPPORT_TLS_CONDUCT_H
/*
 * What a TLS server of the tests does with a connection, from its first byte to what comes before its end,
 * and in which ways that may be. For the table of tls_modes.c, from which they take their particulars. A
 * visit's thread.
 */
struct visit;

/* An empty SETTINGS frame of HTTP/2. */
#define TLS_HTTP2_SETTINGS "\0\0\0\x04\0\0\0\0\0"

/* The end, besides the FIN that is every visit's. */
void tls_end_by_reset(struct visit *v);
void tls_end_by_silence(struct visit *v);      /* until the client ends */
void tls_end_by_notify(struct visit *v);       /* close_notify */
void tls_end_by_notify_alone(struct visit *v); /* TCP stays open until the client ends */
void tls_end_by_false_record(struct visit *v); /* no key of the session fits it */
void tls_end_by_long_record(struct visit *v);
void tls_end_by_alert(struct visit *v);   /* fatal, forged: see tls_forge.h */
void tls_end_by_message(struct visit *v); /* of no known type, forged */

/* All of it. */
void tls_run_answering(struct visit *v);
void tls_run_breaking_hands(struct visit *v);  /* sends `share` of the first flight, then `end` */
void tls_run_answering_hello(struct visit *v); /* with `text` as it is, then `end` */
/* `answers` proper ones; then `end`, if there is `text` after the next request and as the answer to it. */
void tls_run_breaking_answer(struct visit *v);
void tls_run_dripping(struct visit *v); /* the first flight byte by byte */
void tls_run_renegotiating_before(struct visit *v);
void tls_run_renegotiating_after(struct visit *v);
void tls_run_updating_keys(struct visit *v);
void tls_run_asking_late(struct visit *v);    /* for a certificate, with the first request */
void tls_run_speaking_first(struct visit *v); /* an HTTP/2 frame, before any request */
void tls_run_stopping_to_read(struct visit *v);

#endif
