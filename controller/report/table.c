#include "controller/report/table.h"

#include "common/mem.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN         2u  /* before each line and between columns */
#define NAME_WIDTH_MIN 12u /* a name is not cut below this, even if the table gets too wide */

void table_init(struct table *t, const struct table_column *columns, size_t count)
{
    must(count > 0 && count <= TABLE_COLUMNS_MAX);
    *t = (struct table){.columns = columns, .column_count = count};
}

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->row_count * t->column_count; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}

void table_add_row(struct table *t, const char *name)
{
    size_t old = t->row_count * t->column_count;
    t->cells = mem_realloc(t->cells, old + t->column_count, sizeof(*t->cells));
    memset(t->cells + old, 0, t->column_count * sizeof(*t->cells));
    t->cells[old] = utf8_clean(mem_strdup(name), "");
    t->row_count++;
}

void table_set(struct table *t, size_t column, const char *fmt, ...)
{
    must(t->row_count > 0 && column < t->column_count);
    char **cell = &t->cells[(t->row_count - 1) * t->column_count + column];
    va_list ap;
    va_start(ap, fmt);
    free(*cell);
    *cell = utf8_clean(mem_vprintf(fmt, ap), "");
    va_end(ap);
}

void table_set_count(struct table *t, size_t column, size_t count, size_t bad)
{
    if (bad != 0)
        table_set(t, column, "%zu, %zu bad", count, bad);
    else
        table_set(t, column, "%zu", count);
}

static void put_name(struct page *p, const char *name, size_t width)
{
    char *text = page_text_shorten(name, width);
    page_pad(p, MARGIN);
    page_put(p, text);
    page_pad(p, width - page_text_width(text));
    free(text);
}

static void put_cell(struct page *p, const char *text, size_t width, bool left)
{
    size_t have = page_text_width(text);
    size_t blanks = width > have ? width - have : 0;
    page_pad(p, MARGIN + (left ? 0 : blanks));
    page_put(p, text);
    page_pad(p, left ? blanks : 0);
}

static const char *cell(const struct table *t, size_t row, size_t column)
{
    const char *text = t->cells[row * t->column_count + column];
    return text != NULL ? text : "";
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = page_text_width(t->columns[column].title);
    for (size_t row = 0; row < t->row_count; row++) {
        size_t have = page_text_width(cell(t, row, column));
        width = have > width ? have : width;
    }
    return width;
}

static size_t group_end(const struct table *t, size_t from)
{
    size_t to = from;
    while (to < t->column_count && t->columns[to].group == t->columns[from].group)
        to++;
    return to;
}

/* One block: the name and the columns [from, to). */
static void put_block(struct page *p, const struct table *t, size_t from, size_t to, const size_t *widths,
                      size_t name_width)
{
    const char *title = to == group_end(t, from) ? t->group_titles[t->columns[from].group] : NULL;
    put_name(p, title != NULL ? title : t->columns[0].title, name_width);
    for (size_t c = from; c < to; c++)
        put_cell(p, t->columns[c].title, widths[c], t->columns[c].left);
    page_end_line(p);
    for (size_t row = 0; row < t->row_count; row++) {
        put_name(p, cell(t, row, 0), name_width);
        for (size_t c = from; c < to; c++)
            put_cell(p, cell(t, row, c), widths[c], t->columns[c].left);
        page_end_line(p);
    }
}

static size_t columns_width(const size_t *widths, size_t from, size_t to)
{
    size_t width = 0;
    for (size_t c = from; c < to; c++)
        width += MARGIN + widths[c];
    return width;
}

/* The name column is as wide as its longest name and title, but leaves the widest group its room. */
static size_t fit_name(const struct table *t, const size_t *widths, unsigned width)
{
    size_t name = widths[0];
    size_t widest = 0;
    for (size_t from = 1; from < t->column_count; from = group_end(t, from)) {
        size_t group = columns_width(widths, from, group_end(t, from));
        widest = group > widest ? group : widest;
    }
    size_t room = width > MARGIN + widest ? width - MARGIN - widest : 0;
    room = room > NAME_WIDTH_MIN ? room : NAME_WIDTH_MIN;
    return name < room ? name : room;
}

void table_write(const struct table *t, struct page *p)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = column_width(t, c);
    for (size_t g = 0; g < TABLE_COLUMNS_MAX; g++) {
        size_t have = t->group_titles[g] != NULL ? page_text_width(t->group_titles[g]) : 0;
        widths[0] = have > widths[0] ? have : widths[0];
    }
    size_t name_width = fit_name(t, widths, p->width);
    for (size_t from = 1, to; from < t->column_count; from = to) {
        to = group_end(t, from);
        while (to < t->column_count &&
               MARGIN + name_width + columns_width(widths, from, group_end(t, to)) <= p->width)
            to = group_end(t, to);
        if (from > 1)
            page_end_line(p);
        put_block(p, t, from, to, widths, name_width);
    }
}
