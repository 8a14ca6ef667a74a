#ifndef PROTO_MSG_CODEC_H
#define PROTO_MSG_CODEC_H
/*
 * Bytes of one frame <-> struct msg, through the tables of proto/msg/schema.h. Whatever comes in is unpacked
 * under a byte budget, its version, every number, length, count, enum and text checked, and copied out.
 * Any thread; no state.
 *
 * Limits: LIMIT_FRAME_BYTES a frame, LIMIT_DECODE_BYTES of heap to unpack it, and those of the tables.
 */
#include "common/buf.h"
#include "proto/msg/msg.h"

/* Appends the frame. A PROSE text that is too long or not UTF-8 is cut and cleaned; anything else out of its
 * limits is ERR_INVALID with the field's name. ERR_TOO_BIG when the frame would pass LIMIT_FRAME_BYTES: send
 * fewer items. `out` is unchanged on failure. */
NODISCARD enum err codec_encode(const struct msg *m, struct buf *out, struct err_detail *d);

/* Fills `out`, to be freed with msg_fini; its texts are never NULL. `out` is untouched on failure:
 * ERR_TOO_BIG (frame or budget), ERR_UNSUPPORTED (another protocol version), ERR_INVALID with the reason.
 * Of a HELLO or REFUSED of another version, only a HELLO's protocol and a REFUSED's content are read. */
NODISCARD enum err codec_decode(const void *data, size_t len, struct msg *out, struct err_detail *d);

/* What the frame, the session and the serial around the items take at most. */
#define CODEC_ENVELOPE_BYTES 64u

#endif
