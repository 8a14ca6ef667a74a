/*
 * Feeds arbitrary bytes to the decoder and holds it to its word: what it takes can be encoded, copied and
 * decoded again to the same bytes, and what it refuses leaves nothing behind.
 */
#include "common/mem.h"
#include "proto/msg/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct msg *m, struct buf *out)
{
    struct err_detail d;
    buf_init(out, LIMIT_FRAME_BYTES);
    must(codec_encode(m, out, &d) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg first, second, copy;
    struct buf a, b;
    struct err_detail d;
    if (codec_decode(data, size, &first, &d) != ERR_OK)
        return 0;
    /* Of a greeting in another version only the version is known. */
    if (first.kind != MSG_HELLO || first.u.hello.protocol == MSG_PROTOCOL_VERSION) {
        encode(&first, &a);
        must(codec_decode(a.data, a.len, &second, &d) == ERR_OK);
        msg_copy(&copy, &second);
        msg_fini(&second);
        encode(&copy, &b);
        must(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
        msg_fini(&copy);
        buf_fini(&a);
        buf_fini(&b);
    }
    msg_fini(&first);
    return 0;
}
