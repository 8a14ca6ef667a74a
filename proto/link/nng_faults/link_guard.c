#include "proto/link/nng_faults/link_guard.h"

#include "common/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void guard_fini(struct link_guard *g)
{
    free(g->strangers);
    g->strangers = NULL;
    g->stranger_count = 0;
}

void guard_add_port(struct link_guard *g, uint16_t port)
{
    if (g->port_count < GUARD_PORTS_MAX)
        g->ports[g->port_count++] = port;
}

bool guard_watches(const struct link_guard *g, const struct own_socket *s)
{
    for (size_t i = 0; i < g->port_count; i++)
        if (!s->ipc && g->ports[i] == s->local_port)
            return true;
    return false;
}

static int by_cookie(const void *a, const void *b)
{
    uint64_t x = ((const struct guard_stranger *)a)->cookie, y = ((const struct guard_stranger *)b)->cookie;
    return x < y ? -1 : x > y;
}

struct look {
    const struct link_guard *guard;
    uint64_t now_ns;
    uint64_t patience_ns;
    struct guard_stranger *found;
    size_t count;
    size_t capacity;
    size_t ended;
};

static void visit(void *arg, const struct own_socket *s)
{
    struct look *look = arg;
    const struct link_guard *g = look->guard;
    struct guard_stranger one = {.since_ns = look->now_ns};
    socklen_t len = sizeof one.cookie;
    if (!guard_watches(g, s) || g->is_known(g->arg, s) ||
        getsockopt(s->fd, SOL_SOCKET, SO_COOKIE, &one.cookie, &len) != 0)
        return;
    const struct guard_stranger *old =
        g->stranger_count != 0 ? bsearch(&one, g->strangers, g->stranger_count, sizeof one, by_cookie) : NULL;
    if (old != NULL)
        one.since_ns = old->since_ns;
    if (look->now_ns - one.since_ns >= look->patience_ns && shutdown(s->fd, SHUT_RDWR) == 0)
        look->ended++;
    if (look->count == look->capacity) {
        look->capacity = look->capacity * 2 + 64;
        look->found = mem_realloc(look->found, look->capacity, sizeof *look->found);
    }
    look->found[look->count++] = one;
}

size_t guard_check(struct link_guard *g, uint64_t now_ns)
{
    struct look look = {.guard = g,
                        .now_ns = now_ns,
                        .patience_ns =
                            g->stranger_count > GUARD_STRANGERS_MAX ? GUARD_CROWDED_NS : GUARD_SHY_NS};
    own_sockets_visit(visit, &look);
    if (look.count != 0)
        qsort(look.found, look.count, sizeof *look.found, by_cookie);
    free(g->strangers);
    g->strangers = look.found;
    g->stranger_count = look.count;
    return look.ended;
}
