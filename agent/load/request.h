#ifndef AGENT_LOAD_REQUEST_H
#define AGENT_LOAD_REQUEST_H
/*
 * The requests of a run: bytes made once before it, or templates rendered into a connection's own space, and
 * how often each is sent. Owned by main; read by every worker, changed by none.
 */
#include "agent/load/expect.h"
#include "agent/load/options.h"
#include "agent/load/target.h"
#include "agent/load/template.h"

#define REQUESTS_MAX        64u
#define REQUEST_WEIGHT_MAX  1000u
#define REQUESTS_FILE_BYTES (4u * 1024u * 1024u)

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

struct request_set {
    struct request items[REQUESTS_MAX];
    uint32_t count;
    uint8_t *cycle; /* indices in the order of sending: every item as often as its weight says, well mixed */
    uint32_t cycle_len;
    size_t render_bytes; /* space one connection needs for templates; 0 without any */
    bool has_hash;       /* some answer's body is to be hashed */
};

/* From the command line, or from --requests FILE (see docs/load.md). ERR_INVALID for a malformed header, or
 * one that would break the framing (Content-Length, Transfer-Encoding). */
NODISCARD enum err request_set_build(struct request_set *s, const struct target *t, const struct options *o,
                                     struct err_detail *d);
void request_set_fini(struct request_set *s);

/* One request of the set. For request_file.c. */
NODISCARD enum err request_set_add(struct request_set *s, const struct request_spec *spec,
                                   const struct target *t, const struct options *o, struct err_detail *d);

/* Renders a template into `space` (render_bytes); returns the length. */
size_t request_render(const struct request *r, struct template_state *state, uint8_t *space);

#endif
