#include "controller/report/table.h"
#include "controller/report/text.h"
#include "controller/report/units.h"

#define LABELS_BYTES_MAX (1024u * 1024u)

/* "bun/elysia: runtime=bun, framework=elysia" */
static void put_labels(struct page *p, const struct report *r)
{
    for (size_t i = 0; i < r->experiment->target_count; i++) {
        const struct experiment_target *t = &r->experiment->targets[i];
        struct buf text;
        buf_init(&text, LABELS_BYTES_MAX);
        for (size_t k = 0; p->e == ERR_OK && k < t->label_count; k++)
            p->e = buf_printf(&text, "%s%s=%s", k != 0 ? ", " : "", t->labels[k].key, t->labels[k].value);
        if (text.len != 0)
            page_say(p, "", 4, "%s: %s", t->name, text.data);
        buf_fini(&text);
    }
}

static void set_target(struct table *t, const struct report_target *target)
{
    char text[UNITS_TEXT_BYTES];
    table_set(t, 1, "%s", units_time(target->startup_ns.median, text));
    table_set(t, 2, "%s", units_time(target->startup_ns.min, text));
    table_set(t, 3, "%s", units_time(target->startup_ns.max, text));
    table_set(t, 4, "%s", units_bytes(target->rss_before_bytes.median, text));
    table_set(t, 5, "%s", units_bytes(target->rss_after_bytes.median, text));
    table_set_count(t, 6, target->starts, target->failed_starts);
}

void text_put_targets(struct page *p, const struct report *r)
{
    static const struct table_column columns[] = {
        {"", 0, true},        {"median", 1, false},     {"min", 1, false},
        {"max", 1, false},    {"RSS before", 1, false}, {"RSS after", 1, false},
        {"starts", 1, false},
    };
    struct table t;
    size_t starts = 0;
    page_heading(p, "targets");
    table_init(&t, columns, ARRAY_LEN(columns));
    t.group_titles[1] = "start-up";
    for (size_t i = 0; i < r->experiment->target_count; i++) {
        table_add_row(&t, r->experiment->targets[i].name);
        set_target(&t, &r->targets[i]);
        starts += r->targets[i].starts;
    }
    if (starts != 0)
        table_write(&t, p);
    else
        page_say(p, "", 4, "%s", text_is_over(r) ? "none was started" : "none was started yet");
    table_fini(&t);
    put_labels(p, r);
}

void text_put_failures(struct page *p, const struct report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->experiment->target_count; i++) {
        const struct report_target *t = &r->targets[i];
        const char *name = r->experiment->targets[i].name;
        if (t->why == NULL)
            continue;
        const char *why = t->why[0] != '\0' ? t->why : "no reason was stored";
        if (!any)
            page_heading(p, "failures");
        any = true;
        if (t->withheld)
            page_say(p, "  !", 4, "%s has no number: in round %u, %s", name, t->failed_round + 1, why);
        else
            page_say(p, "  !", 4, "%s failed in %zu of %zu runs, first in round %u: %s", name,
                     t->failed_starts, t->starts, t->failed_round + 1, why);
    }
}
