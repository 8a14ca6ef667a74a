#ifndef AGENT_LOAD_AGREEMENT_H
#define AGENT_LOAD_AGREEMENT_H
/*
 * What the TLS hand-shakes agreed on, counted: a server, or several behind one name, may answer differently.
 * A bounded table; what finds no room adds to its last row. Owned by one worker; merged after the threads
 * end.
 */
#include "agent/load/tls.h"

#define AGREEMENT_ROWS_MAX 8u

struct agreement {
    struct tls_agreed agreed; /* `resumed` is left out of account */
    uint64_t connections;
};

struct agreement_table {
    struct agreement rows[AGREEMENT_ROWS_MAX];
    size_t count;
};

void agreement_note(struct agreement_table *t, const struct tls_agreed *agreed);
void agreement_merge(struct agreement_table *t, const struct agreement_table *from);

#endif
