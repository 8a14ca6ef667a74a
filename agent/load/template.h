#ifndef AGENT_LOAD_TEMPLATE_H
#define AGENT_LOAD_TEMPLATE_H
/*
 * Text with places that change from request to request:
 *     {{counter}}        the number of the request, from 0, unique in the run
 *     {{random:MIN-MAX}} a random whole number
 *     {{line:FILE}}      the lines of a file in turn
 * Parsed once; rendered without allocation. A template is read by every worker, a template_state is a
 * worker's own.
 */
#include "common/err.h"

#define TEMPLATE_PARTS_MAX      64u
#define TEMPLATE_LINE_BYTES_MAX 4096u
#define TEMPLATE_FILE_BYTES_MAX (16u * 1024u * 1024u)

enum template_place {
    TEMPLATE_HEAD, /* of a request: values may not hold control bytes or, as a target could be meant, blanks
                    */
    TEMPLATE_BODY
};

struct template_part;

struct template
{
    char *text;
    size_t part_count;
    struct template_part *parts;
    size_t len_max; /* of what is rendered */
};

struct template_state {
    uint64_t number; /* of the request; the same for all places in it */
    uint64_t step;   /* to this worker's next request */
    uint64_t random;
};

NODISCARD enum err template_parse(struct template *t, const char *text, size_t len, enum template_place place,
                                  struct err_detail *d);
void template_fini(struct template *t);

void template_state_init(struct template_state *s, uint32_t index, uint32_t threads, uint64_t seed);

/* Writes at most `len_max` bytes to `out`; returns how many. */
size_t template_render(const struct template *t, struct template_state *s, uint8_t *out);

/* The next request begins. */
static inline void template_advance(struct template_state *s)
{
    s->number += s->step;
}

#endif
