#include "controller/cli/listing.h"

#include "common/buf.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "controller/cli/show.h"
#include "controller/report/table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LAST_WIDTH_MIN      20u /* below this a terminal wraps */
#define NOTE_INDENT         4u
#define NOTE_LINE_BYTES_MAX (4u * LIMIT_TEXT_BYTES) /* with what wrapping adds */

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
static void print_note(const char *note)
{
    char *copy = mem_strdup(note);
    char *rest = copy;
    while (rest != NULL) {
        struct buf out;
        const char *line = strsep(&rest, "\n");
        buf_init(&out, NOTE_LINE_BYTES_MAX);
        if (line[0] != '\0' && table_wrap("", NOTE_INDENT, line, show_width(), &out) == ERR_OK)
            fputs(out.data, stdout);
        buf_fini(&out);
    }
    free(copy);
}

/* The last cell of a line, cut with ".." where the terminal ends. */
static void print_last(const char *text, size_t room)
{
    size_t bytes = 0;
    if (table_text_width(text) <= room) {
        puts(text);
        return;
    }
    for (size_t left = room - 2; left > 0; left--)
        do
            bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80);
    printf("%.*s..\n", (int)bytes, text);
}

void listing_print(const struct listing *t)
{
    struct winsize size;
    size_t edge = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
    size_t at = 0;
    for (size_t cell = 0; cell < t->count; cell++) {
        const char *text = t->cells[cell];
        size_t column = cell % t->columns;
        size_t width = 0;
        at = column == 0 ? 0 : at;
        for (size_t i = column; i < t->count; i += t->columns)
            width = table_text_width(t->cells[i]) > width ? table_text_width(t->cells[i]) : width;
        int blanks = (int)(width - table_text_width(text));
        if (column + 1 == t->columns)
            print_last(text, edge >= at + LAST_WIDTH_MIN ? edge - at : LAST_WIDTH_MIN);
        else if (t->right[column])
            printf("%*s%s  ", blanks, "", text);
        else
            printf("%s%*s  ", text, blanks, "");
        at += width + 2;
        if (column + 1 == t->columns && cell / t->columns < t->note_count)
            print_note(t->notes[cell / t->columns]);
    }
}

void listing_fini(struct listing *t)
{
    mem_free_strings(&t->cells, &t->count);
    mem_free_strings(&t->notes, &t->note_count);
}
