#ifndef AGENT_LOAD_QUICK_H
#define AGENT_LOAD_QUICK_H
/*
 * Most answers of a benchmark repeat the head of the one before, byte for byte (the Date changes once a
 * second). Comparing takes a few nanoseconds where parsing takes a hundred, and is exactly as strict:
 * equal bytes have equal meaning. Owned by one worker, which has one for each request it sends.
 */
#include "common/response.h"

#define QUICK_HEAD_BYTES_MAX 2048u

struct quick {
    uint32_t head_len; /* 0: nothing learnt yet */
    struct response_head head;
    uint8_t bytes[QUICK_HEAD_BYTES_MAX];
};

/* Parses the head at the start of `data` and remembers it. False when it is not whole, too long to keep,
 * interim or faulty: response_feed must read it then. */
bool quick_learn(struct quick *q, const uint8_t *data, size_t len);

/* True when the head at the start of `data` is known now: it is `q->head`, `q->head_len` bytes long. */
static inline bool quick_know(struct quick *q, const uint8_t *data, size_t len)
{
    if (q->head_len != 0 && len >= q->head_len && memcmp(data, q->bytes, q->head_len) == 0)
        return true;
    return quick_learn(q, data, len);
}

#endif
