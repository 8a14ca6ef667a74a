/* Who has a session with the controller. */
#include "common/mem.h"
#include "controller/daemon/server_inner.h"

void server_add_peer(struct server *s, struct link_peer *link, struct fleet_agent *agent)
{
    struct server_peer *p = mem_zalloc(1, sizeof *p);
    *p = (struct server_peer){.next = s->peers, .id = ++s->last_peer_id, .link = link, .agent = agent};
    s->peers = p;
    link_peer_set_data(link, p);
}

void server_keep_answer(struct server_peer *peer, const struct server_answer *answer)
{
    free(peer->answer.job);
    free(peer->answer.arg);
    free(peer->answer.text);
    spill_free(peer->answer.spill);
    peer->answer = *answer;
}

void server_remove_peer(struct server *s, struct server_peer *peer)
{
    struct server_peer **at = &s->peers;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    server_keep_answer(peer, &(struct server_answer){0});
    free(peer);
}

struct server_peer *server_find_peer(struct server *s, uint64_t id)
{
    struct server_peer *p = s->peers;
    while (p != NULL && p->id != id)
        p = p->next;
    return p;
}

void server_drop_peers(struct server *s, const char *name, const char *why, uint64_t asker)
{
    for (struct server_peer *p = s->peers; p != NULL; p = p->next) {
        bool over_ipc = link_peer_serial(p->link)[0] == '\0'; /* a user's own name is no certificate's */
        if (over_ipc || strcmp(link_peer_name(p->link), name) != 0)
            continue;
        if (p->id == asker)
            link_peer_dismiss(p->link, why);
        else
            link_peer_drop(p->link, why);
    }
}
