#include "controller/report/table.h"

#include "common/mem.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN         2u  /* before each line and between columns */
#define NAME_WIDTH_MIN 12u /* a name is not cut below this, even if the table gets too wide */

void table_init(struct table *t, const struct table_column *columns, size_t count)
{
    must(count > 0 && count <= TABLE_COLUMNS_MAX);
    *t = (struct table){.column_count = count};
    memcpy(t->columns, columns, count * sizeof(*columns));
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
    char *text = NULL;
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    must(n >= 0);
    free(*cell);
    *cell = utf8_clean(text, "");
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t table_text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += !continues(*text);
    return width;
}

/* The byte where character `n` starts. */
static size_t offset_of(const char *text, size_t n)
{
    size_t at = 0;
    while (text[at] != '\0' && (n > 0 || continues(text[at]))) {
        at++;
        if (!continues(text[at]) && n > 0)
            n--;
    }
    return at;
}

char *table_shorten(const char *text, size_t width)
{
    size_t have = table_text_width(text);
    must(width > 2);
    if (have <= width)
        return utf8_clean(mem_strdup(text), "");
    size_t head = (width - 2) / 2;
    size_t tail = width - 2 - head;
    return utf8_clean(
        mem_printf("%.*s..%s", (int)offset_of(text, head), text, text + offset_of(text, have - tail)), "");
}

static enum err write_name(const char *name, size_t width, struct buf *out)
{
    char *text = table_shorten(name, width);
    enum err e =
        buf_printf(out, "%*s%s%*s", (int)MARGIN, "", text, (int)(width - table_text_width(text)), "");
    free(text);
    return e;
}

static enum err write_cell(const char *text, size_t width, bool left, struct buf *out)
{
    size_t have = table_text_width(text);
    int pad = (int)(width > have ? width - have : 0);
    return left ? buf_printf(out, "%*s%s%*s", (int)MARGIN, "", text, pad, "")
                : buf_printf(out, "%*s%*s%s", (int)MARGIN, "", pad, "", text);
}

static void drop_trailing_blanks(struct buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

static const char *cell(const struct table *t, size_t row, size_t column)
{
    const char *text = t->cells[row * t->column_count + column];
    return text != NULL ? text : "";
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = table_text_width(t->columns[column].title);
    for (size_t row = 0; row < t->row_count; row++) {
        size_t have = table_text_width(cell(t, row, column));
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
static enum err write_block(const struct table *t, size_t from, size_t to, const size_t *widths,
                            size_t name_width, struct buf *out)
{
    const char *title = to == group_end(t, from) ? t->group_titles[t->columns[from].group] : NULL;
    enum err e = write_name(title != NULL ? title : t->columns[0].title, name_width, out);
    for (size_t c = from; e == ERR_OK && c < to; c++)
        e = write_cell(t->columns[c].title, widths[c], t->columns[c].left, out);
    drop_trailing_blanks(out);
    for (size_t row = 0; e == ERR_OK && row < t->row_count; row++) {
        e = buf_append_text(out, "\n");
        if (e == ERR_OK)
            e = write_name(cell(t, row, 0), name_width, out);
        for (size_t c = from; e == ERR_OK && c < to; c++)
            e = write_cell(cell(t, row, c), widths[c], t->columns[c].left, out);
        drop_trailing_blanks(out);
    }
    return e == ERR_OK ? buf_append_text(out, "\n") : e;
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

enum err table_write(const struct table *t, unsigned width, struct buf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = column_width(t, c);
    for (size_t g = 0; g < TABLE_COLUMNS_MAX; g++) {
        size_t have = t->group_titles[g] != NULL ? table_text_width(t->group_titles[g]) : 0;
        widths[0] = have > widths[0] ? have : widths[0];
    }
    size_t name_width = fit_name(t, widths, width);

    enum err e = ERR_OK;
    size_t from = 1;
    while (e == ERR_OK && from < t->column_count) {
        size_t to = group_end(t, from);
        while (to < t->column_count &&
               MARGIN + name_width + columns_width(widths, from, group_end(t, to)) <= width)
            to = group_end(t, to);
        if (from > 1)
            e = buf_append_text(out, "\n");
        if (e == ERR_OK)
            e = write_block(t, from, to, widths, name_width, out);
        from = to;
    }
    return e;
}

enum err table_wrap(const char *lead, size_t indent, const char *text, unsigned width, struct buf *out)
{
    char *copy = utf8_clean(mem_strdup(text), "");
    size_t column = table_text_width(lead);
    enum err e = buf_append_text(out, lead);
    if (e == ERR_OK && column < indent)
        e = buf_printf(out, "%*s", (int)(indent - column), "");
    column = column > indent ? column : indent;
    bool fresh = true; /* nothing on this line yet */
    char *rest = copy;
    while (e == ERR_OK && rest != NULL) {
        char *word = strsep(&rest, " ");
        size_t have = table_text_width(word);
        if (have == 0)
            continue;
        if (!fresh && column + 1 + have > width) {
            e = buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        if (e == ERR_OK)
            e = buf_printf(out, "%s%s", fresh ? "" : " ", word);
        column += have + !fresh;
        fresh = false;
    }
    free(copy);
    return e == ERR_OK ? buf_append_text(out, "\n") : e;
}
