#include "agent/load/transport.h"

enum err transport_new(struct transport **out, enum transport_kind kind, uint32_t slots, struct err_detail *d)
{
    switch (kind) {
    case TRANSPORT_URING:
        return transport_uring_new(out, slots, d);
    case TRANSPORT_UV:
        return transport_uv_new(out, slots, d);
    case TRANSPORT_AUTO:
        return transport_uring_new(out, slots, NULL) == ERR_OK ? ERR_OK : transport_uv_new(out, slots, d);
    }
    must(!"a kind without a case");
}
