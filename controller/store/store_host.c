#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_db.h"
#include "controller/store/store_read.h"

#include <stdlib.h>
#include <string.h>

/* Labels as one text, one a line. */
static enum err join_labels(const struct msg_strings *labels, struct buf *out, struct err_detail *d)
{
    for (size_t i = 0; i < labels->count; i++) {
        const char *label = msg_text(labels->items[i]);
        if (strchr(label, '\n') != NULL)
            return err_set(d, ERR_INVALID, "host label \"%s\" holds a line break", label);
        if (buf_printf(out, "%s%s", i != 0 ? "\n" : "", label) != ERR_OK)
            return err_set(d, ERR_TOO_BIG, "the labels of a host are longer than %zu bytes", out->max);
    }
    return ERR_OK;
}

static struct msg_strings split_labels(char *text)
{
    struct msg_strings labels = {0};
    char *rest = text;
    while (rest != NULL && *rest != '\0') {
        char *label = strsep(&rest, "\n");
        labels.items = mem_realloc(labels.items, labels.count + 1, sizeof(*labels.items));
        labels.items[labels.count++] = mem_strdup(label);
    }
    free(text);
    return labels;
}

void store_read_host_row(struct store_rows *r, struct store_read_host *out)
{
    *out = (struct store_read_host){
        .id = store_column_i64(r, 0),
        .role = store_column_text(r, 1),
        .ordinal = store_column_u32(r, 2),
        .agent = store_column_text(r, 3),
        .facts =
            {
                .hostname = store_column_text(r, 4),
                .boot_id = store_column_text(r, 5),
                .kernel = store_column_text(r, 6),
                .os = store_column_text(r, 7),
                .cpu_model = store_column_text(r, 8),
                .address = store_column_text(r, 9),
                .cpus = store_column_u32(r, 10),
                .cpu_list = store_column_text(r, 11),
                .memory_bytes = store_column_u64(r, 12),
                .labels = split_labels(store_column_text(r, 13)),
                .libraries = store_column_text(r, 15),
            },
        .put_wall_ns = store_column_u64(r, 14),
    };
}

void store_read_host_fini(struct store_read_host *host)
{
    free(host->role);
    free(host->agent);
    msg_host_fini(&host->facts);
    *host = (struct store_read_host){0};
}

static bool same_labels(const struct msg_strings *a, const struct msg_strings *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(msg_text(a->items[i]), msg_text(b->items[i])) != 0)
            return false;
    return true;
}

static bool same_host(const struct store_read_host *was, const struct store_host *is)
{
    const struct msg_host *a = &was->facts;
    const struct msg_host *b = is->facts;
    const char *const pairs[][2] = {
        {was->agent, is->agent},
        {a->hostname, b->hostname},
        {a->boot_id, b->boot_id},
        {a->kernel, b->kernel},
        {a->os, b->os},
        {a->cpu_model, b->cpu_model},
        {a->address, b->address},
        {a->cpu_list, b->cpu_list},
        {a->libraries, b->libraries},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (strcmp(pairs[i][0], msg_text(pairs[i][1])) != 0)
            return false;
    return a->cpus == b->cpus && a->memory_bytes == b->memory_bytes && same_labels(&a->labels, &b->labels);
}

static enum err is_current(struct store *s, const char *job, const struct store_host *host, bool *out,
                           struct err_detail *d)
{
    struct store_rows rows;
    store_rows_init(&rows, s,
                    "SELECT " STORE_HOST_COLUMNS " FROM hosts WHERE job = ? AND role = ? AND ordinal = ?"
                    " ORDER BY id DESC LIMIT 1",
                    STORE_VALUES(store_text(job), store_text(host->role), store_u64(host->ordinal)));
    *out = false;
    if (store_rows_next(&rows)) {
        struct store_read_host was;
        store_read_host_row(&rows, &was);
        *out = same_host(&was, host);
        store_read_host_fini(&was);
    }
    return store_rows_fini(&rows, d);
}

enum err store_put_host(struct store *s, const char *job, const struct store_host *host, struct err_detail *d)
{
    const struct msg_host *f = host->facts;
    struct buf labels;
    buf_init(&labels, (size_t)MSG_LABELS_MAX * LIMIT_TEXT_BYTES);
    enum err e = join_labels(&f->labels, &labels, d);
    if (e == ERR_OK)
        e = store_begin(s, d);
    if (e != ERR_OK)
        goto out;
    bool current = false;
    e = is_current(s, job, host, &current, d);
    if (e == ERR_OK && !current)
        e = store_run(
            s,
            "INSERT INTO hosts (job, role, ordinal, agent, hostname, boot_id, kernel, os, cpu_model, address,"
            " cpus, cpu_list, memory_bytes, labels, libraries, put_wall_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            STORE_VALUES(store_text(job), store_text(host->role), store_u64(host->ordinal),
                         store_text(host->agent), store_text(f->hostname), store_text(f->boot_id),
                         store_text(f->kernel), store_text(f->os), store_text(f->cpu_model),
                         store_text(f->address), store_u64(f->cpus), store_text(f->cpu_list),
                         store_u64(f->memory_bytes), store_text(labels.data), store_text(f->libraries),
                         store_u64(clock_wall_ns())),
            d);
    e = store_end(s, e, d);
out:
    buf_fini(&labels);
    return e;
}
