/*
 * Feeds arbitrary bytes to the agent's reader of answers (probes, checks), whole and in pieces: pieces make
 * no difference, and no more of a body is kept than was asked for. The first two bytes choose the method, how
 * much is kept, and the size of the pieces.
 */
#include "agent/probe/http_response.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum err feed(struct http_response *r, const uint8_t *data, size_t len, size_t piece)
{
    struct err_detail d = {""};
    enum err e = ERR_OK;
    for (size_t at = 0; at < len && e == ERR_OK; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        char *copy = mem_dup(data + at, n); /* of the exact size: reading on is caught */
        e = http_response_feed(r, copy, n, &d);
        free(copy);
    }
    must((e == ERR_OK) == (d.text[0] == '\0'));
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct http_response whole;
    struct http_response pieces;
    size_t keep = data[0] >> 2;
    http_response_init(&whole, (data[0] & 1) != 0, keep);
    http_response_init(&pieces, (data[0] & 1) != 0, keep);
    enum err a = feed(&whole, data + 2, size - 2, size);
    enum err b = feed(&pieces, data + 2, size - 2, data[1] % 7 + 1u);
    must((a == ERR_OK) == (b == ERR_OK));
    if (a == ERR_OK) {
        must(whole.framing.state == pieces.framing.state && whole.framing.status == pieces.framing.status);
        must(whole.headers.count == pieces.headers.count &&
             whole.framing.body_len == pieces.framing.body_len);
        must(whole.body.len == pieces.body.len && whole.body.len <= keep);
        must(http_response_end(&whole, NULL) == http_response_end(&pieces, NULL));
    }
    http_response_fini(&whole);
    http_response_fini(&pieces);
    return 0;
}
