#include "agent/task/task_inner.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

#define LOG_TAIL_LINES 20u

/* ---- holds ---------------------------------------------------------------------------------------- */

void task_hold(struct task *t)
{
    t->holds++;
}

void task_release(struct task *t)
{
    must(t->holds > 0);
    if (--t->holds == 0 && t->on_unheld != NULL)
        t->on_unheld(t);
}

/* ---- answers -------------------------------------------------------------------------------------- */

void task_emit(struct task *t, struct msg_event *event)
{
    event->job = t->job; /* borrowed, as the whole event is */
    t->emit(t->arg, event);
}

void task_answer(struct task *t, uint64_t command, enum err code, const char *text)
{
    struct msg_event event = {.answers = command,
                              .kind = MSG_EVENT_DONE,
                              .code = code,
                              .text = msg_borrowed(text != NULL ? text : "")};
    task_emit(t, &event);
}

const char *task_exit_text(const struct process_exit *exit, char *out, size_t size)
{
    if (exit->lapsed)
        snprintf(out, size, "was ended because its lease ran out");
    else if (exit->signal != 0)
        snprintf(out, size, "was ended by signal %d (%s)", exit->signal, strsignal(exit->signal));
    else if (exit->left_behind > 0)
        snprintf(out, size,
                 "ended with status %d, leaving %u processes behind; it has to stay in the foreground",
                 exit->status, exit->left_behind);
    else
        snprintf(out, size, "ended with status %d", exit->status);
    return out;
}

/* "WHAT; its last output:\n..." cut to LIMIT_TEXT_BYTES; the caller frees. */
static char *with_log_tail(struct task *t, uint32_t proc, const char *what)
{
    char *tail = t->set != NULL ? process_read_log_tail(t->set, proc, LOG_TAIL_LINES) : NULL;
    char *text;
    size_t used = tail != NULL ? strlen(tail) : 0;
    while (used > 0 && strchr(" \t\r\n", tail[used - 1]) != NULL)
        tail[--used] = '\0';
    if (used == 0) {
        text = mem_printf("%s; it printed nothing", what);
    } else {
        size_t taken = strlen(what) + 64;
        size_t room = taken < LIMIT_TEXT_BYTES ? LIMIT_TEXT_BYTES - taken : 0;
        const char *last = tail + (used > room ? used - room : 0);
        while (((unsigned char)*last & 0xc0) == 0x80)
            last++; /* not inside a character */
        text = mem_printf("%s; its last output:\n%s", what, last);
    }
    free(tail);
    return text;
}

void task_answer_with_log(struct task *t, uint64_t command, enum err code, uint32_t proc, const char *what)
{
    char *text = with_log_tail(t, proc, what);
    task_answer(t, command, code, text);
    free(text);
}

void task_emit_exited(struct task *t, uint64_t answers, uint32_t proc, const struct process_exit *exit)
{
    struct msg_event event = {.answers = answers, .kind = MSG_EVENT_EXITED};
    struct msg_exited *x = &event.u.exited;
    size_t len = 0;
    char *log = process_read_log(t->set, proc, &len, &x->log_dropped_bytes);
    char *tail = process_read_log_tail(t->set, proc, LOG_TAIL_LINES);
    x->proc = proc;
    x->asked = exit->asked;
    x->status = exit->status;
    x->signal = exit->signal;
    x->log_tail = tail;
    x->log = (struct msg_bytes){(uint8_t *)log, len};
    task_emit(t, &event);
    free(log);
    free(tail);
}

/* ---- STOPs that wait for an end ------------------------------------------------------------------- */

void task_stops_add(struct task_stops *s, uint64_t command)
{
    s->commands = mem_realloc(s->commands, s->count + 1, sizeof *s->commands);
    s->commands[s->count++] = command;
}

void task_stops_exited(struct task *t, struct task_stops *s, uint32_t proc, const struct process_exit *exit)
{
    for (size_t i = 0; i < s->count; i++)
        task_emit_exited(t, s->commands[i], proc, exit);
    task_stops_fini(s);
}

void task_stops_refuse(struct task *t, struct task_stops *s, const char *text)
{
    for (size_t i = 0; i < s->count; i++)
        task_answer(t, s->commands[i], ERR_NOT_FOUND, text);
    task_stops_fini(s);
}

void task_stops_fini(struct task_stops *s)
{
    free(s->commands);
    *s = (struct task_stops){0};
}
