#include "agent/load/accounts.h"

void accounts_merge(struct accounts *a, const struct accounts *from)
{
    a->scheduled += from->scheduled;
    a->carried_in += from->carried_in;
    a->ok += from->ok;
    a->failed += from->failed;
    a->in_flight += from->in_flight;
    a->never_sent += from->never_sent;
    a->sent += from->sent;
    a->responses += from->responses;
    a->short_bodies += from->short_bodies;
    a->body_bytes += from->body_bytes;
    a->wire_in += from->wire_in;
    a->wire_out += from->wire_out;
    a->idle_closes += from->idle_closes;
    a->idle_surplus += from->idle_surplus;
    a->open_failures += from->open_failures;
    a->reconnects += from->reconnects;
}

bool accounts_balanced(const struct accounts *a)
{
    return a->scheduled == a->ok + a->failed + a->in_flight + a->never_sent;
}
