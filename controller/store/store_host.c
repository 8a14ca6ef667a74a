#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "controller/store/store_read.h"
#include "controller/store/store_row.h"

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

/* A host as its row: the labels are one text there. */
struct host_row {
    struct store_read_host host;
    char *labels;
};

#define ROW struct host_row
static const struct store_column columns[] = {
    C_READ("id", REF, host.id, int64_t),
    C_TEXT("role", host.role),
    C_U32("ordinal", host.ordinal),
    C_TEXT("agent", host.agent),
    C_TEXT("hostname", host.facts.hostname),
    C_TEXT("boot_id", host.facts.boot_id),
    C_TEXT("kernel", host.facts.kernel),
    C_TEXT("os", host.facts.os),
    C_TEXT("cpu_model", host.facts.cpu_model),
    C_TEXT("address", host.facts.address),
    C_U32("cpus", host.facts.cpus),
    C_TEXT("cpu_list", host.facts.cpu_list),
    C_U64("memory_bytes", host.facts.memory_bytes),
    C_TEXT("labels", labels),
    C_U64("put_wall_ns", host.put_wall_ns),
    C_TEXT("libraries", host.facts.libraries),
};
#undef ROW
const struct store_table store_hosts_table = STORE_TABLE("hosts", columns);

void store_get_host(struct store_rows *r, struct store_read_host *out)
{
    struct host_row row = {.labels = NULL};
    store_get_row(r, &store_hosts_table, &row);
    *out = row.host;
    out->facts.labels = split_labels(row.labels);
}

void store_read_host_fini(struct store_read_host *host)
{
    struct host_row row = {.host = *host};
    mem_free_strings(&row.host.facts.labels.items, &row.host.facts.labels.count);
    store_row_fini(&store_hosts_table, &row);
    *host = (struct store_read_host){0};
}

/* Is this the newest row of its part already? */
static enum err is_current(struct store *s, const char *job, const struct host_row *is, bool *out,
                           struct err_detail *d)
{
    struct store_rows rows;
    struct host_row was = {.labels = NULL};
    store_select(&rows, s, &store_hosts_table,
                 " WHERE job = ? AND role = ? AND ordinal = ? ORDER BY id DESC LIMIT 1",
                 STORE_VALUES(store_text(job), store_text(is->host.role), store_u64(is->host.ordinal)));
    *out = false;
    if (store_rows_next(&rows)) {
        store_get_row(&rows, &store_hosts_table, &was);
        was.host.put_wall_ns = is->host.put_wall_ns; /* the same, found again later */
        *out = store_row_equal(&store_hosts_table, &was, is);
        store_row_fini(&store_hosts_table, &was);
    }
    return store_rows_fini(&rows, d);
}

enum err store_put_host(struct store *s, const char *job, const struct store_host *host, struct err_detail *d)
{
    struct buf labels;
    buf_init(&labels, (size_t)MSG_LABELS_MAX * LIMIT_TEXT_BYTES);
    struct host_row row = {.host = {.role = host->role,
                                    .ordinal = host->ordinal,
                                    .agent = host->agent,
                                    .facts = *host->facts,
                                    .put_wall_ns = clock_wall_ns()}};
    bool current = false;
    enum err e = join_labels(&host->facts->labels, &labels, d);
    row.labels = labels.data;
    if (e == ERR_OK)
        e = store_begin(s, d);
    if (e != ERR_OK)
        goto out;
    e = is_current(s, job, &row, &current, d);
    if (e == ERR_OK && !current)
        e = store_insert(s, &store_hosts_table, "job", store_text(job), &row, d);
    e = store_end(s, e, d);
out:
    buf_fini(&labels);
    return e;
}
