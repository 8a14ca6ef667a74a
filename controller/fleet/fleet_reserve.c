/*
 * Which agents a job gets: seats (one per wanted host) matched with free agents, so that a choosy role is not
 * left without its only host because an easy one took it. Augmenting paths (Kuhn); labs have tens of hosts.
 */
#include "controller/fleet/fleet.h"

#include "common/log.h"
#include "common/mem.h"
#include "controller/fleet/fleet_agent.h"

#include <inttypes.h>

struct matching {
    const struct fleet *fleet;
    const struct experiment_role *seat_want[LIMIT_HOSTS];
    uint32_t seat_ordinal[LIMIT_HOSTS];
    size_t seat_count;
    size_t *agent_seat; /* per agent: its seat + 1, 0 = none */
    bool *visited;
    bool whole_fleet; /* taken and absent agents count too: would it ever do? */
};

static bool has_label(const struct msg_host *facts, const struct experiment_label *label)
{
    size_t key = strlen(label->key);
    for (size_t i = 0; i < facts->labels.count; i++) {
        const char *text = facts->labels.items[i];
        if (strncmp(text, label->key, key) == 0 && text[key] == '=' &&
            strcmp(text + key + 1, label->value) == 0)
            return true;
    }
    return false;
}

static bool suits(const struct matching *m, const struct fleet_agent *a, const struct experiment_role *want)
{
    if (!m->whole_fleet && (a->peer == NULL || a->state != FLEET_FREE))
        return false;
    for (size_t i = 0; i < want->label_count; i++) {
        if (!has_label(&a->facts, &want->labels[i]))
            return false;
    }
    return true;
}

static bool seat_one(struct matching *m, size_t seat)
{
    for (size_t i = 0; i < m->fleet->agent_count; i++) {
        if (m->visited[i] || !suits(m, m->fleet->agents[i], m->seat_want[seat]))
            continue;
        m->visited[i] = true;
        if (m->agent_seat[i] == 0 || seat_one(m, m->agent_seat[i] - 1)) {
            m->agent_seat[i] = seat + 1;
            return true;
        }
    }
    return false;
}

/* True when every seat has an agent; else *short_seat is the first that has none. */
static bool match(struct matching *m, size_t *short_seat)
{
    bool all = true;
    memset(m->agent_seat, 0, m->fleet->agent_count * sizeof *m->agent_seat);
    for (size_t s = 0; s < m->seat_count && all; s++) {
        memset(m->visited, 0, m->fleet->agent_count * sizeof *m->visited);
        if (!seat_one(m, s)) {
            *short_seat = s;
            all = false;
        }
    }
    return all;
}

static const char *labels_text(const struct experiment_role *want, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < want->label_count && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s=%s", i ? ", " : " with ", want->labels[i].key,
                         want->labels[i].value);
        if (n > 0)
            used += (size_t)n;
    }
    return out;
}

static enum err say_what_is_short(struct matching *m, size_t seat, struct err_detail *d)
{
    char labels[256];
    const struct experiment_role *want = m->seat_want[seat];
    const char *plural = want->count == 1 ? "" : "s";
    labels_text(want, labels, sizeof labels);
    size_t ignored = 0;
    m->whole_fleet = true;
    if (match(m, &ignored))
        return err_set(d, ERR_BUSY, "waiting for hosts: role '%s' needs %u agent%s%s; busy or away",
                       want->name, want->count, plural, labels);
    return err_set(
        d, ERR_NOT_FOUND,
        "waiting for hosts: role '%s' needs %u agent%s%s; this controller has not seen enough of them "
        "(`splitbench hosts` lists those it has)",
        want->name, want->count, plural, labels);
}

static void take(struct matching *m, const char *job, uint64_t run, struct fleet_host *out)
{
    for (size_t i = 0; i < m->fleet->agent_count; i++) {
        struct fleet_agent *a = m->fleet->agents[i];
        if (m->agent_seat[i] == 0)
            continue;
        size_t seat = m->agent_seat[i] - 1;
        mem_set_string(&a->job, job);
        a->run = run;
        a->host = (uint32_t)seat;
        fleet_agent_handle(a, FLEET_EVENT_RESERVE);
        out[seat] = (struct fleet_host){.agent = a,
                                        .name = a->name,
                                        .role = m->seat_want[seat]->name,
                                        .ordinal = m->seat_ordinal[seat],
                                        .incarnation = a->incarnation,
                                        .facts = &a->facts,
                                        .address = a->address};
        log_info("host_reserved", "job=%s run=%" PRIu64 " agent=%s role=%s", job, run, a->name,
                 out[seat].role);
    }
}

enum err fleet_reserve(struct fleet *f, const char *job, uint64_t run, const struct experiment_role *roles,
                       size_t role_count, struct fleet_host *out, struct err_detail *d)
{
    struct matching *m = mem_zalloc(1, sizeof *m);
    m->fleet = f;
    m->agent_seat = mem_zalloc(f->agent_count + 1, sizeof *m->agent_seat);
    m->visited = mem_zalloc(f->agent_count + 1, sizeof *m->visited);
    enum err e = ERR_OK;
    size_t short_seat = 0;
    for (size_t i = 0; i < role_count; i++) {
        for (uint32_t k = 0; k < roles[i].count; k++) {
            if (m->seat_count == LIMIT_HOSTS) {
                e = err_set(d, ERR_TOO_BIG, "an experiment may use %u hosts at most", LIMIT_HOSTS);
                goto out;
            }
            m->seat_want[m->seat_count] = &roles[i];
            m->seat_ordinal[m->seat_count++] = k;
        }
    }
    if (match(m, &short_seat))
        take(m, job, run, out);
    else
        e = say_what_is_short(m, short_seat, d);
out:
    free(m->agent_seat);
    free(m->visited);
    free(m);
    return e;
}
