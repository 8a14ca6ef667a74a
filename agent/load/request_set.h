#ifndef AGENT_LOAD_REQUEST_SET_H
#define AGENT_LOAD_REQUEST_SET_H
/*
 * The requests of a run, and how often each is sent: one from the command line, or several from a JSON file,
 * each with what to expect. Owned by main; read by every worker, changed by none.
 */
#include "agent/load/request.h"

#define REQUESTS_MAX        64u
#define REQUEST_WEIGHT_MAX  1000u
#define REQUESTS_FILE_BYTES (4u * 1024u * 1024u)

struct request_set {
    struct request items[REQUESTS_MAX];
    uint32_t count;
    uint8_t *cycle; /* indices in the order of sending: every item as often as its weight says, well mixed */
    uint32_t cycle_len;
    size_t render_bytes; /* space one connection needs for templates; 0 without any */
    bool has_hash;       /* some answer's body is to be hashed */
};

/* From the command line, or from --requests FILE (see docs/load.md). To be freed after an error, too. */
NODISCARD enum err request_set_build(struct request_set *s, const struct target *t, const struct options *o,
                                     struct err_detail *d);
void request_set_fini(struct request_set *s);

#endif
