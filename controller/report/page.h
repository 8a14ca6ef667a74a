#ifndef CONTROLLER_REPORT_PAGE_H
#define CONTROLLER_REPORT_PAGE_H
/*
 * Text written for people, line by line within a width. The first failure sticks and is asked for at the end:
 * nothing in between has to. Owned by the caller; one thread.
 */
#include "common/buf.h"

struct page {
    struct buf *out; /* borrowed */
    unsigned width;  /* in columns */
    enum err e;      /* ERR_TOO_BIG: `out` is full */
    size_t blanks;   /* before the next text of this line; none are written at its end */
};

/* Part of a line, as it is: words of our own, or clean ones (utf8_clean). */
void page_put(struct page *p, const char *text);
void page_pad(struct page *p, size_t blanks);
void page_end_line(struct page *p);

/* Lines wrapped between `indent` and the width, the first one behind `lead`. Control characters become
 * blanks, so that nothing that a server or an agent said can command a terminal. */
void page_say(struct page *p, const char *lead, size_t indent, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* An empty line and a rule with words in it, as wide as the page; words that need more than a line get no
 * rule. */
void page_heading(struct page *p, const char *words);

/* Columns that a text takes on a terminal: its characters, not its bytes. */
size_t page_text_width(const char *text);
/* The byte where character `n` of a text begins, or its end. */
size_t page_text_offset(const char *text, size_t n);
/* At most `width` (3 or more) columns of it, cut in the middle ("node/ult..press"); the caller frees it. */
char *page_text_shorten(const char *text, size_t width);

#endif
