#include "controller/daemon/doorstep.h"

#include "common/base.h"
#include "common/mem.h"

struct network {
    uint64_t id;
    uint64_t seen_ns;  /* last */
    uint64_t since_ns; /* of the first of `wrong` */
    unsigned wrong;
    unsigned under_way;
};

struct doorstep {
    struct network networks[DOORSTEP_NETWORKS_MAX];
    size_t count;
    unsigned under_way;
};

_Static_assert(DOORSTEP_NETWORKS_MAX > DOORSTEP_UNDER_WAY_MAX, "one is always free to be forgotten");

struct doorstep *doorstep_new(void)
{
    return mem_zalloc(1, sizeof(struct doorstep));
}

void doorstep_free(struct doorstep *s)
{
    free(s);
}

static struct network *find(struct doorstep *s, uint64_t id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->networks[i].id == id)
            return &s->networks[i];
    return NULL;
}

/* A place for a network that was not seen before: a new one, or that of the one seen longest ago. */
static struct network *take_place(struct doorstep *s, uint64_t id)
{
    struct network *place = NULL;
    if (s->count < DOORSTEP_NETWORKS_MAX) {
        place = &s->networks[s->count++];
    } else {
        for (size_t i = 0; i < s->count; i++)
            if (s->networks[i].under_way == 0 && (place == NULL || s->networks[i].seen_ns < place->seen_ns))
                place = &s->networks[i];
        must(place != NULL);
    }
    *place = (struct network){.id = id};
    return place;
}

enum err doorstep_enter(struct doorstep *s, uint64_t network, uint64_t now_ns, struct err_detail *d)
{
    struct network *n = find(s, network);
    if (s->under_way >= DOORSTEP_UNDER_WAY_MAX || (n != NULL && n->under_way >= DOORSTEP_NETWORK_MAX))
        return err_set(d, ERR_BUSY, "too many enroll at once; try again in a moment");
    if (n == NULL)
        n = take_place(s, network);
    if (n->wrong != 0 && now_ns - n->since_ns >= DOORSTEP_PERIOD_NS)
        n->wrong = 0;
    if (n->wrong >= DOORSTEP_WRONG_MAX)
        return err_set(d, ERR_BUSY, "%u tokens from this address were refused; try again in %u s",
                       DOORSTEP_WRONG_MAX,
                       (unsigned)((DOORSTEP_PERIOD_NS - (now_ns - n->since_ns)) / NS_PER_S) + 1);
    n->seen_ns = now_ns;
    n->under_way++;
    s->under_way++;
    return ERR_OK;
}

bool doorstep_leave(struct doorstep *s, uint64_t network, bool wrong, uint64_t now_ns)
{
    struct network *n = find(s, network);
    must(n != NULL && n->under_way > 0);
    n->under_way--;
    s->under_way--;
    if (!wrong)
        return false;
    if (n->wrong++ == 0)
        n->since_ns = now_ns;
    return n->wrong == DOORSTEP_WRONG_MAX;
}
