/*
 * Gives arbitrary bytes to the driver of the built-in generator as its result, as one of its events and as
 * its version: it is refused with a reason, or its accounts balance.
 */
#include "agent/driver/driver.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_result(const char *text, size_t len)
{
    const struct driver_span span = {.started_at_ns = 0, .ended_at_ns = UINT64_MAX};
    struct msg_event event = {.kind = MSG_EVENT_LOADED};
    struct msg_loaded *l = &event.u.loaded;
    struct err_detail d = {""};
    enum err e = driver_builtin.parse(text, len, &span, l, &d);
    must((e == ERR_OK) == (d.text[0] == '\0'));
    if (e == ERR_OK) {
        const struct msg_accounts *a = &l->window;
        must(a->scheduled == a->ok + a->failed + a->in_flight + a->never_sent);
        must(l->window_end_ns > l->window_start_ns && l->error_count <= MSG_ERRORS_MAX);
    }
    msg_event_fini(&event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_dup(data, size); /* of the exact size: reading on is caught */
    char *line = mem_strndup((const char *)data, size);
    struct msg_progress progress;
    char *generator = NULL;
    take_result(text, size);
    if (driver_builtin.read_event(line, &progress))
        must(progress.kind < MSG_PROGRESS_COUNT);
    if (driver_builtin.prove(text, size, &generator, NULL) == ERR_OK)
        free(generator);
    free(text);
    free(line);
    return 0;
}
