#include "controller/cli/show.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned show_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 80 ? size.ws_col : 80;
}

enum err show_report(struct client *client, const char *job, bool json, struct err_detail *d)
{
    struct buf text;
    enum err e = client_ask(client,
                            &(struct client_ask){.kind = json ? MSG_ASK_REPORT_JSON : MSG_ASK_REPORT_TEXT,
                                                 .job = job,
                                                 .number = json ? 0 : show_width()},
                            &text, d);
    if (e != ERR_OK)
        return e;
    e = show_text(&text, d);
    buf_fini(&text);
    return e;
}

enum err show_text(const struct buf *text, struct err_detail *d)
{
    bool ok = text->len == 0 || fwrite(text->data, 1, text->len, stdout) == text->len;
    if (text->len != 0 && text->data[text->len - 1] != '\n')
        putchar('\n');
    if (!ok || fflush(stdout) != 0)
        return err_set(d, ERR_IO, "cannot write to standard output");
    return ERR_OK;
}
