#include "controller/report/page.h"

#include "common/mem.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void page_put(struct page *p, const char *text)
{
    if (p->e == ERR_OK && text[0] != '\0')
        p->e = buf_printf(p->out, "%*s%s", (int)p->blanks, "", text);
    p->blanks = text[0] != '\0' ? 0 : p->blanks;
}

void page_pad(struct page *p, size_t blanks)
{
    p->blanks += blanks;
}

void page_end_line(struct page *p)
{
    p->blanks = 0;
    page_put(p, "\n");
}

void page_say(struct page *p, const char *lead, size_t indent, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = utf8_clean(mem_vprintf(fmt, ap), "");
    va_end(ap);
    size_t column = page_text_width(lead);
    page_put(p, lead);
    page_pad(p, column < indent ? indent - column : 0);
    column = column > indent ? column : indent;
    bool fresh = true; /* nothing on this line yet */
    char *rest = text;
    while (rest != NULL) {
        const char *word = strsep(&rest, " ");
        size_t have = page_text_width(word);
        if (have == 0)
            continue;
        if (!fresh && column + 1 + have > p->width) {
            page_end_line(p);
            page_pad(p, indent);
            column = indent;
            fresh = true;
        }
        page_pad(p, !fresh);
        page_put(p, word);
        column += have + !fresh;
        fresh = false;
    }
    page_end_line(p);
    free(text);
}

void page_heading(struct page *p, const char *words)
{
    static const char lead[] = "-- ";
    size_t have = strlen(lead) + page_text_width(words) + 1;
    page_end_line(p);
    if (have + 2 < p->width) {
        page_put(p, lead);
        page_put(p, words);
        page_pad(p, 1);
        for (; have < p->width; have++)
            page_put(p, "-");
        page_end_line(p);
    } else {
        page_say(p, "--", strlen(lead), "%s", words);
    }
    page_end_line(p);
}

/* ---- texts by their columns ---- */

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t page_text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += !continues(*text);
    return width;
}

size_t page_text_offset(const char *text, size_t n)
{
    size_t at = 0;
    while (text[at] != '\0' && (n > 0 || continues(text[at]))) {
        at++;
        if (!continues(text[at]) && n > 0)
            n--;
    }
    return at;
}

char *page_text_shorten(const char *text, size_t width)
{
    size_t have = page_text_width(text);
    must(width > 2);
    if (have <= width)
        return utf8_clean(mem_strdup(text), "");
    size_t head = (width - 2) / 2;
    size_t tail = width - 2 - head;
    return utf8_clean(mem_printf("%.*s..%s", (int)page_text_offset(text, head), text,
                                 text + page_text_offset(text, have - tail)),
                      "");
}
