#ifndef TESTS_SUPPORT_TLS_FORGE_H
#define TESTS_SUPPORT_TLS_FORGE_H
/*
 * Records of TLS 1.3 as a server's OpenSSL would never send them: encrypted rightly, with anything in them.
 * Only of the suite TLS_AES_128_GCM_SHA256. Any thread.
 */
#include "common/base.h"

#define TLS_FORGE_SECRET   32u
#define TLS_FORGE_OVERHEAD 22u /* head, type, authentication tag */

/*
 * The `sequence`th record under `secret` (a traffic secret of RFC 8446, section 7.1): content of this type,
 * which is 21 of alerts, 22 of hand-shake messages, 23 of data. `out` has room for `len` and the overhead.
 * Returns its length.
 */
size_t tls_forge(uint8_t *out, const uint8_t secret[TLS_FORGE_SECRET], uint64_t sequence, uint8_t type,
                 const void *data, size_t len);

#endif
