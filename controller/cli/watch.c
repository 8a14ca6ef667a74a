#include "controller/cli/watch.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ANSWER_LIMIT_NS (20 * NS_PER_S)
#define POLL_MS         200 /* between two questions: watching must not cost what is measured */
#define BAR_CELLS       24u

struct watch {
    uint64_t next_line;
    bool quiet;
    bool terminal;
    bool ended;
    int exit_code;
    uint32_t windows_total;
    char state[16];
    char job[LIMIT_NAME_BYTES + 1]; /* whole from the first answer on: later jobs may begin alike */
    struct err_detail cause;
    struct err_detail waits; /* why it is queued, as told last */
    size_t drawn;            /* columns of the bar that stands */
};

static atomic_uint interrupts; /* any thread may be the one that is interrupted */

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/* 1234567 -> "1.23M": three figures. */
static const char *short_count(uint64_t n, char *out, size_t size)
{
    if (n < 1000)
        snprintf(out, size, "%" PRIu64, n);
    else if (n < 1000000)
        snprintf(out, size, "%.*fk", n < 100000 ? 1 : 0, (double)n / 1e3);
    else
        snprintf(out, size, "%.2fM", (double)n / 1e6);
    return out;
}

/* A terminal that became narrower has folded the bar: its upper lines go, too. */
static void clear_bar(struct watch *w)
{
    if (!w->terminal || w->quiet)
        return;
    size_t above = w->drawn > 0 ? (w->drawn - 1) / terminal_width() : 0;
    w->drawn = 0;
    if (above > 0)
        fprintf(stderr, "\033[%zuA", above);
    fputs("\r\033[J", stderr);
}

static void draw_bar(struct watch *w, const struct msg_watched *m)
{
    if (!w->terminal || w->quiet || w->ended)
        return;
    char bar[BAR_CELLS + 1];
    char rate[16] = "";
    char left[32];
    char line[512];
    size_t full = m->windows_total != 0 ? (size_t)m->windows_done * BAR_CELLS / m->windows_total : 0;
    full = full > BAR_CELLS ? BAR_CELLS : full;
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', full);
    bar[BAR_CELLS] = '\0';
    parse_duration_text((m->remaining_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S, left, sizeof left);
    if (m->ok_per_s != 0)
        short_count(m->ok_per_s, rate, sizeof rate);
    snprintf(line, sizeof line, "[%s] %" PRIu32 "/%" PRIu32 "  %s left  %s%s%s", bar, m->windows_done,
             m->windows_total, left, rate, rate[0] != '\0' ? "/s  " : "", msg_text(m->doing));
    size_t len = strlen(utf8_clean(line, ""));
    w->drawn = len < terminal_width() ? len : terminal_width() - 1;
    fprintf(stderr, "%.*s", (int)w->drawn, line);
}

/* Why a job waits, once. */
static void say_waits(struct watch *w, const char *why)
{
    if (strcmp(w->state, "queued") != 0 || why[0] == '\0' || strcmp(why, w->waits.text) == 0)
        return;
    err_set(&w->waits, ERR_BUSY, "%s", why);
    if (!w->quiet)
        fprintf(stderr, "queued: %s\n", why);
}

static void take_watched(void *arg, const struct msg *reply)
{
    struct watch *w = arg;
    const struct msg_watched *m = &reply->u.watched;
    if (reply->kind != MSG_WATCHED)
        return;
    const char *state = msg_text(m->state);
    if (msg_text(m->job)[0] != '\0')
        snprintf(w->job, sizeof w->job, "%s", m->job);
    w->ended = strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
    w->exit_code = m->exit_code;
    w->windows_total = m->windows_total;
    snprintf(w->state, sizeof w->state, "%s", state);
    err_set(&w->cause, ERR_FAILED, "%s", msg_text(m->cause));
    utf8_clean(w->cause.text, "\n");
    clear_bar(w);
    for (size_t i = 0; i < m->lines.count && !w->quiet; i++) {
        char *line = utf8_clean(mem_strdup(m->lines.items[i]), "\n"); /* may quote what a server said */
        fprintf(stderr, "%s\n", line);
        free(line);
    }
    say_waits(w, w->cause.text);
    w->next_line = m->next_line;
    draw_bar(w, m);
    fflush(stderr);
}

static enum err ask_watch(struct client *client, const char *job, uint64_t after_line,
                          void (*take)(void *arg, const struct msg *reply), void *arg, struct err_detail *d)
{
    struct msg m;
    msg_init(&m, MSG_WATCH);
    mem_set_string(&m.u.watch.job, job);
    m.u.watch.after_line = after_line;
    enum err e = client_call(client, &m, ANSWER_LIMIT_NS, take, arg, d);
    msg_fini(&m);
    return e;
}

static enum err cancel(struct client *client, const char *job, struct err_detail *d)
{
    struct buf answer;
    enum err e = client_ask(client, &(struct client_ask){.kind = MSG_ASK_CANCEL, .job = job}, &answer, d);
    if (e == ERR_OK)
        buf_fini(&answer);
    return e;
}

static enum err follow(struct watch *w, struct client *client, const struct watch_options *options,
                       struct err_detail *d)
{
    bool cancelled = false;
    while (!w->ended && interrupts < 2) {
        if (interrupts == 1 && !options->cancel_on_intr)
            return ERR_OK;
        if (interrupts == 1 && !cancelled) {
            fprintf(stderr, "\ncancelling; what was measured stays (^C again leaves at once)\n");
            enum err e = cancel(client, w->job, d);
            if (e != ERR_OK && e != ERR_NOT_NOW) /* ERR_NOT_NOW: it has just ended, as will be seen */
                return e;
            cancelled = true;
        }
        uint64_t before = w->next_line;
        enum err e = ask_watch(client, w->job, before, take_watched, w, d);
        if (!w->ended && options->check != NULL) {
            bool queued = strcmp(w->state, "queued") == 0;
            enum err gone = options->check(options->check_arg, queued, d);
            if (gone != ERR_OK && queued) {
                struct err_detail ignored;
                (void)cancel(client, w->job, &ignored); /* so that it can be resumed */
            }
            e = gone != ERR_OK ? gone : e;
        }
        if (e != ERR_OK)
            return e;
        if (!w->ended && w->next_line == before)
            poll(NULL, 0, POLL_MS); /* a signal ends it early */
    }
    return ERR_OK;
}

static void take_skipped(void *arg, const struct msg *reply)
{
    struct watch_options *o = arg;
    if (reply->kind != MSG_WATCHED)
        return;
    o->from_line = reply->u.watched.next_line;
    o->windows_done = reply->u.watched.windows_done;
    o->windows_total = reply->u.watched.windows_total;
}

enum err watch_skip(struct client *client, struct watch_options *options, struct err_detail *d)
{
    enum err e = ERR_OK;
    uint64_t before;
    do {
        before = options->from_line;
        e = ask_watch(client, options->job, before, take_skipped, options, d);
    } while (e == ERR_OK && options->from_line != before);
    return e;
}

/* "job X cancelled by 'me'", "job X failed: why" */
static void say_end(const struct watch *w)
{
    const char *cause = w->cause.text;
    if (strcmp(w->state, "cancelled") == 0) /* then the cause is the whole sentence */
        fprintf(stderr, "splitbench: job %s %s\n", w->job, cause);
    else
        fprintf(stderr, "splitbench: job %s %s%s%s\n", w->job, w->state, cause[0] == '\0' ? "" : ": ", cause);
}

enum err watch_job(struct client *client, const struct watch_options *options, struct watch_end *end,
                   struct err_detail *d)
{
    struct watch w = {
        .next_line = options->from_line, .quiet = options->quiet, .terminal = isatty(STDERR_FILENO) == 1};
    struct sigaction act = {.sa_handler = on_interrupt};
    struct sigaction old_int;
    struct sigaction old_term;
    snprintf(w.job, sizeof w.job, "%s", options->job);
    interrupts = 0;
    sigaction(SIGINT, &act, &old_int);
    sigaction(SIGTERM, &act, &old_term);
    enum err e = follow(&w, client, options, d);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    clear_bar(&w);
    *end = (struct watch_end){.ended = w.ended,
                              .exit_code = w.ended ? w.exit_code : CLI_EXIT_INFRA,
                              .windows_total = w.windows_total};
    memcpy(end->job, w.job, sizeof end->job);
    if (e == ERR_OK && w.ended && (strcmp(w.state, "done") != 0 || w.exit_code != 0))
        say_end(&w);
    if (e == ERR_OK && !w.ended)
        fprintf(stderr, "splitbench: job %s goes on; 'splitbench watch %s' follows it\n", w.job, w.job);
    return e;
}
