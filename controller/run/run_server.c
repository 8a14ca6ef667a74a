/* What is known of the processes under test: which one is up, how one ended, its log until it is stored. */
#include "common/mem.h"
#include "controller/run/run_inner.h"

void run_server_begin(struct run *r, uint32_t target)
{
    r->server = &r->servers[target];
    free(r->server->log);
    *r->server = (struct run_server){.up = true, .target = target, .proc = r->next_proc++};
}

void run_server_describe_end(const struct msg_exited *x, const char *when, char *out, size_t size)
{
    const char *tail = msg_text(x->log_tail);
    const char *said = tail[0] ? "; it said:\n" : "; it said nothing";
    if (x->signal != 0)
        snprintf(out, size, "ended by signal %d%s%s%s", x->signal, when, said, tail);
    else
        snprintf(out, size, "exited with status %d%s%s%s", x->status, when, said, tail);
}

void run_server_keep_log(struct run_server *s, const struct msg_exited *x)
{
    free(s->log);
    s->log = mem_dup(x->log.data, x->log.len);
    s->log_len = x->log.len;
}

void run_server_ended(struct run *r, const struct msg_exited *x)
{
    for (size_t t = 0; t < r->e->target_count; t++) {
        struct run_server *s = &r->servers[t];
        if (!s->up || s->proc != x->proc)
            continue;
        s->up = false;
        s->died = !x->asked;
        int n = snprintf(s->died_text, sizeof s->died_text, "target '%s' ", r->e->targets[t].name);
        must(n > 0 && (size_t)n < sizeof s->died_text); /* names are capped */
        run_server_describe_end(x, "", s->died_text + n, sizeof s->died_text - (size_t)n);
        run_server_keep_log(s, x);
    }
}

enum err run_server_store_end(struct run *r, struct run_server *s, uint64_t rss_after_bytes,
                              const char *error, struct err_detail *d)
{
    if (s->run_id == 0)
        return ERR_OK;
    enum err e = store_end_target_run(r->store, s->run_id, rss_after_bytes, error, s->log, s->log_len, d);
    free(s->log);
    s->log = NULL;
    s->log_len = 0;
    s->run_id = 0;
    return e;
}
