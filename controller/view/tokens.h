#ifndef CONTROLLER_VIEW_TOKENS_H
#define CONTROLLER_VIEW_TOKENS_H
/*
 * The tokens that were made, as JSON: what `splitbench token --list` prints. Secrets are not in the store,
 * and so not here. The thread of the store handle.
 */
#include "common/buf.h"
#include "controller/store/store.h"

#define TOKENS_MAX 1000u /* of those that expire last */

/* {"format":"splitbench-tokens/1","tokens":[{"role","state","made_by","made","expires","used_by","used"}]};
 * those that expire last come first; state is "unused", "used", "expired" or "revoked"; times as text; null
 * for what is not known or has not been. ERR_TOO_BIG when `out` cannot hold it. */
NODISCARD enum err tokens_write_json(struct store *s, struct buf *out, struct err_detail *d);

#endif
