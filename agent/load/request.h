#ifndef AGENT_LOAD_REQUEST_H
#define AGENT_LOAD_REQUEST_H
/*
 * One request: bytes made once before the run, or a template rendered into a connection's own space. Owned by
 * main; read by every worker, changed by none.
 */
#include "agent/load/expect.h"
#include "agent/load/options.h"
#include "agent/load/target.h"
#include "agent/load/template.h"

/* What a request is made from; everything borrowed. */
struct request_spec {
    const char *name;           /* for the report */
    const char *method;         /* NULL: GET, or POST with a body */
    const char *path;           /* NULL: the URL's */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const char *body;
    size_t body_len;
    bool has_body;
    bool is_template;
    uint32_t weight;
    struct expect expect;
};

struct request {
    char *name;
    uint32_t index; /* in the set */
    uint8_t *bytes; /* of a fixed request; NULL for a template */
    size_t len;
    bool is_head; /* its answer has no body */
    bool closes;  /* says "Connection: close": none may follow it there (RFC 9112 9.6) */
    bool is_template;
    bool has_length;      /* template: Content-Length stands between head and body */
    struct template head; /* without the empty line */
    struct template body;
    struct expect expect;
    uint32_t weight;
};

/* ERR_INVALID for a malformed header, or one that would break the framing (Content-Length,
 * Transfer-Encoding). What was made is to be freed after an error, too. */
NODISCARD enum err request_make(struct request *r, const struct request_spec *spec, const struct target *t,
                                const struct options *o, struct err_detail *d);
void request_fini(struct request *r);

/* The space that rendering it needs; 0 for one that is no template. */
size_t request_render_bytes(const struct request *r);
/* Renders a template into `space`; returns the length. */
size_t request_render(const struct request *r, struct template_state *state, uint8_t *space);

#endif
