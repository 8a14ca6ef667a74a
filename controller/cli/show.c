#include "controller/cli/show.h"

#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum err show_open_store(const struct place *place, struct store **out, struct err_detail *d)
{
    char *path = place_local_store(place);
    enum err e =
        access(path, F_OK) == 0
            ? store_open(path, true, out, d)
            : err_set(d, ERR_NOT_FOUND,
                      "no local runs yet (there is no %s): 'splitbench run --local FILE' makes one", path);
    free(path);
    return e;
}

enum err show_local_error(enum err e, const char *job, struct err_detail *d)
{
    if (e != ERR_NOT_FOUND || job[0] == '\0')
        return e;
    return err_set(d, e, "no local job %s: 'splitbench status --local' lists them", job);
}

enum err show_find_local(struct store *store, const char *typed, char **id, struct err_detail *d)
{
    if (typed[0] != '\0')
        return show_local_error(store_find_job(store, typed, id, d), typed, d);
    *id = mem_strdup("");
    return ERR_OK;
}

unsigned show_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 80 ? size.ws_col : 80;
}

enum err show_report(struct client *client, const char *job, bool json, struct err_detail *d)
{
    const struct client_ask ask = {.kind = json ? MSG_ASK_REPORT_JSON : MSG_ASK_REPORT_TEXT,
                                   .job = job,
                                   .number = json ? 0 : show_width()};
    enum err e = client_ask_pieces(client, &ask, show_piece, NULL, d);
    return e == ERR_OK ? show_end(d) : e;
}

enum err show_followed(struct client *client, const struct cli_flags *flags, struct watch_options *options,
                       int *exit_code, struct err_detail *d)
{
    struct watch_end end;
    options->quiet = flags->quiet;
    enum err e = watch_job(client, options, &end, d);
    if (e != ERR_OK)
        return e;
    *exit_code = end.exit_code;
    bool shown = end.ended && (flags->json || end.windows_total != 0); /* to verify has no windows */
    return shown ? show_report(client, end.job, flags->json, d) : ERR_OK;
}

enum err show_piece(void *arg, const char *data, size_t len, struct err_detail *d)
{
    (void)arg;
    if (len != 0 && fwrite(data, 1, len, stdout) != len)
        return err_set(d, ERR_IO, "cannot write to standard output");
    return ERR_OK;
}

enum err show_end(struct err_detail *d)
{
    return fflush(stdout) == 0 ? ERR_OK : err_set(d, ERR_IO, "cannot write to standard output");
}

enum err show_text(const struct buf *text, struct err_detail *d)
{
    enum err e = show_piece(NULL, text->data, text->len, d);
    if (e == ERR_OK && text->len != 0 && text->data[text->len - 1] != '\n')
        e = show_piece(NULL, "\n", 1, d);
    return e == ERR_OK ? show_end(d) : e;
}
