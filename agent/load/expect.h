#ifndef AGENT_LOAD_EXPECT_H
#define AGENT_LOAD_EXPECT_H
/*
 * What an answer must be like to count as ok: its status, and when asked for the length and the SHA-256 of
 * its body. Part of a request; read by every worker, changed by none.
 */
#include "common/err.h"
#include "common/sha256.h"

#define EXPECT_STATUS_MAX 1000u

struct expect {
    uint64_t statuses[(EXPECT_STATUS_MAX + 63) / 64]; /* one bit each */
    bool has_length;
    bool has_hash;
    uint64_t length;
    uint8_t hash[SHA256_BYTES];
};

/* Any status 2xx, any body. */
void expect_init(struct expect *e);

/* "200,204" or "2xx,304": replaces the statuses. */
NODISCARD enum err expect_parse_status(struct expect *e, const char *text, const char *what,
                                       struct err_detail *d);
/* 64 hexadecimal digits. */
NODISCARD enum err expect_parse_hash(struct expect *e, const char *text, const char *what,
                                     struct err_detail *d);

static inline bool expect_has_status(const struct expect *e, uint16_t status)
{
    return (e->statuses[status / 64] >> (status % 64) & 1) != 0;
}

#endif
