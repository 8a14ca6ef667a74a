#include "agent/load/transport.h"

enum err transport_new(struct transport **out, enum transport_kind kind, uint32_t slots, struct err_detail *d)
{
    if (kind == TRANSPORT_URING)
        return transport_uring_new(out, slots, d);
    if (kind == TRANSPORT_AUTO && transport_uring_new(out, slots, NULL) == ERR_OK)
        return ERR_OK;
    return transport_uv_new(out, slots, d);
}
