#include "agent/load/quick.h"

bool quick_learn(struct quick *q, const uint8_t *data, size_t len)
{
    q->head_len = 0;
    size_t head_len = response_head_len(data, len);
    if (head_len == 0 || head_len > QUICK_HEAD_BYTES_MAX)
        return false;
    if (response_head_parse(data, head_len, &q->head) != RESPONSE_NONE || q->head.status < 200)
        return false;
    memcpy(q->bytes, data, head_len);
    q->head_len = (uint32_t)head_len;
    return true;
}
