#include "controller/cli/listing.h"

#include "common/mem.h"
#include "common/utf8.h"
#include "controller/cli/show.h"
#include "controller/report/page.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LAST_WIDTH_MIN 16u /* below this a terminal wraps; of 80 columns the widest job leaves so much */
#define NOTE_INDENT    4u

void listing_init(struct listing *t, size_t columns, const bool *right)
{
    *t = (struct listing){.columns = columns, .right = right};
}

static void keep(char ***items, size_t *count, char *text)
{
    *items = mem_realloc(*items, *count + 1, sizeof **items);
    (*items)[(*count)++] = text;
}

void listing_add(struct listing *t, const char *text)
{
    text += strspn(text, "\n");
    size_t line = strcspn(text, "\n");
    keep(&t->cells, &t->count, line != 0 ? utf8_clean(mem_strndup(text, line), "") : mem_strdup("-"));
}

void listing_note(struct listing *t, const char *text)
{
    must(t->count != 0 && t->count % t->columns == 0);
    while (t->note_count < t->count / t->columns - 1)
        keep(&t->notes, &t->note_count, mem_strdup(""));
    keep(&t->notes, &t->note_count, mem_strdup(text));
}

/* Each line of it, wrapped. */
static void put_note(struct page *p, const char *note)
{
    char *copy = mem_strdup(note);
    char *rest = copy;
    while (rest != NULL) {
        const char *line = strsep(&rest, "\n");
        if (line[0] != '\0')
            page_say(p, "", NOTE_INDENT, "%s", line);
    }
    free(copy);
}

/* The last cell of a line, cut with ".." where the terminal ends. */
static void put_last(struct page *p, const char *text, size_t room)
{
    bool cut = page_text_width(text) > room;
    char *shown = mem_strndup(text, page_text_offset(text, cut ? room - 2 : SIZE_MAX));
    page_put(p, shown);
    page_put(p, cut ? ".." : "");
    page_end_line(p);
    free(shown);
}

static void put_cell(struct page *p, const struct listing *t, size_t cell, size_t width)
{
    const char *text = t->cells[cell];
    size_t blanks = width - page_text_width(text);
    bool right = t->right[cell % t->columns];
    page_pad(p, right ? blanks : 0);
    page_put(p, text);
    page_pad(p, right ? 2 : blanks + 2);
}

static size_t column_width(const struct listing *t, size_t column)
{
    size_t width = 0;
    for (size_t i = column; i < t->count; i += t->columns)
        width = page_text_width(t->cells[i]) > width ? page_text_width(t->cells[i]) : width;
    return width;
}

void listing_print(const struct listing *t)
{
    struct winsize size;
    size_t edge = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
    struct buf out;
    struct page p = {.out = &out, .width = show_width()};
    must(t->columns > 0);
    size_t *widths = mem_zalloc(t->columns, sizeof *widths);
    buf_init(&out, LIMIT_ANSWER_BYTES);
    for (size_t column = 0; column < t->columns; column++)
        widths[column] = column_width(t, column);
    for (size_t row = 0; row < t->count / t->columns; row++) {
        size_t cell = row * t->columns;
        size_t at = 0;
        for (size_t column = 0; column + 1 < t->columns; column++, cell++) {
            put_cell(&p, t, cell, widths[column]);
            at += widths[column] + 2;
        }
        put_last(&p, t->cells[cell], edge >= at + LAST_WIDTH_MIN ? edge - at : LAST_WIDTH_MIN);
        if (row < t->note_count)
            put_note(&p, t->notes[row]);
    }
    fputs(out.data != NULL ? out.data : "", stdout);
    buf_fini(&out);
    free(widths);
}

void listing_fini(struct listing *t)
{
    mem_free_strings(&t->cells, &t->count);
    mem_free_strings(&t->notes, &t->note_count);
}
