#ifndef AGENT_LOAD_REQUEST_H
#define AGENT_LOAD_REQUEST_H
/*
 * The bytes of a request, made once before the run. Owned by main; read by every worker, changed by none.
 */
#include "agent/load/options.h"
#include "agent/load/target.h"

struct request {
    uint8_t *bytes;
    size_t len;
    bool is_head; /* its answer has no body */
};

/* Builds the request line, Host, the headers given, Content-Length where the method or a body asks for it,
 * and the body. Nothing else is sent. ERR_INVALID for a malformed header, or one that would break the
 * framing (Content-Length, Transfer-Encoding). */
NODISCARD enum err request_build(struct request *r, const struct target *t, const struct options *o,
                                 struct err_detail *d);
void request_fini(struct request *r);

#endif
