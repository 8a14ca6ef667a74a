/*
 * Feeds arbitrary bytes to the response reader, whole and in pieces, and holds it to its word: the pieces
 * make no difference, nothing is eaten twice, and the quick reader never knows better than the patient one.
 * The first byte chooses the method and the sizes of the pieces.
 */
#include "agent/load/quick.h"
#include "common/mem.h"
#include "common/response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t feed_all(struct response *r, bool to_head, const uint8_t *data, size_t len, size_t piece)
{
    size_t eaten = 0;
    response_init(r, to_head);
    for (size_t at = 0; at < len && r->fault == RESPONSE_NONE && r->state != RESPONSE_DONE; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        uint8_t *copy = mem_dup(data + at, n); /* of the exact size: reading on is caught */
        eaten += response_feed(r, copy, n, NULL);
        free(copy);
    }
    return eaten;
}

static void check_quick(const uint8_t *data, size_t len)
{
    struct quick *q = mem_zalloc(1, sizeof *q);
    if (quick_know(q, data, len)) {
        struct response_head h;
        must(q->head_len <= len && response_head_len(data, len) == q->head_len);
        must(response_head_parse(data, q->head_len, &h) == RESPONSE_NONE && h.status >= 200);
        must(quick_know(q, data, len));
    }
    free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool to_head = (data[0] & 0x80) != 0;
    size_t piece = (data[0] & 0x7f) + 1;
    data++;
    size--;
    struct response whole = {0};
    struct response pieces = {0};
    size_t eaten = feed_all(&whole, to_head, data, size, size + 1);
    size_t eaten_in_pieces = feed_all(&pieces, to_head, data, size, piece);
    must(eaten <= size);
    must(whole.state == pieces.state && whole.fault == pieces.fault && whole.status == pieces.status);
    must(whole.body_len == pieces.body_len && whole.keep_alive == pieces.keep_alive);
    must(whole.fault != RESPONSE_NONE || eaten == eaten_in_pieces);
    response_end(&whole);
    must(whole.state == RESPONSE_DONE || whole.fault != RESPONSE_NONE || whole.fault != pieces.fault);
    response_fini(&whole);
    response_fini(&pieces);
    check_quick(data, size);
    return 0;
}
