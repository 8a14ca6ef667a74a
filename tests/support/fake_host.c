/* What a host of the fake world does with each command: nothing real, and what the faults say. */
#include "tests/support/fake_inner.h"

#include "common/clock.h"
#include "common/hist.h"
#include "common/mem.h"
#include "common/parse.h"

static void emit_done(struct fake_agent *a, uint64_t answers, enum err code, const char *text)
{
    struct msg_event e = {.code = code, .text = (char *)(uintptr_t)text};
    fake_emit(a, &e, answers, MSG_EVENT_DONE);
}

static void emit_progress_at(struct fake_agent *a, uint64_t number, enum msg_progress_kind kind,
                             uint64_t at_ns, uint64_t ok)
{
    struct msg_event e = {.u.progress = {.kind = kind, .at_ns = at_ns, .ok = ok}};
    fake_emit(a, &e, number, MSG_EVENT_PROGRESS);
}

static void emit_progress(struct fake_agent *a, uint64_t number, enum msg_progress_kind kind)
{
    emit_progress_at(a, number, kind, clock_now_ns(), 10);
}

static void end_load(struct fake_agent *a, uint64_t number, void *data)
{
    struct msg_load *l = data;
    if (a->load != number)
        return;
    emit_progress(a, number, MSG_PROGRESS_WINDOW_END);
    a->load = 0;
    a->world->load_end_ns = clock_now_ns();
    if (fake_chance(a->world, a->world->faults.load_fail)) {
        emit_done(a, number, ERR_FAILED, "the generator was killed");
        return;
    }
    uint64_t now = clock_now_ns();
    struct msg_event e = {0};
    struct msg_loaded *r = &e.u.loaded;
    r->window_start_ns = now - l->duration_ns;
    r->window_end_ns = now;
    r->window = (struct msg_accounts){.scheduled = 100, .ok = 98, .in_flight = 2};
    if (fake_chance(a->world, a->world->faults.unbalanced))
        r->window.scheduled++;
    struct hist *h = hist_new();
    struct buf text;
    for (uint64_t i = 0; i < r->window.ok; i++)
        hist_record(h, (i + 1) * NS_PER_US);
    buf_init(&text, HIST_TEXT_BYTES_MAX);
    must(hist_encode(h, &text) == ERR_OK);
    hist_free(h);
    r->latency_hist = (struct msg_bytes){(uint8_t *)text.data, text.len};
    fake_emit(a, &e, number, MSG_EVENT_LOADED);
    buf_fini(&text);
}

static void start_window(struct fake_agent *a, uint64_t number, void *data)
{
    const struct msg_load *l = data;
    if (a->load != number)
        return;
    /* Its clock runs ahead: 500 a second for 100 ms, then FAKE_OK_PER_S for as long. */
    uint64_t now = clock_now_ns();
    emit_progress_at(a, number, MSG_PROGRESS_WINDOW_START, now, 0);
    emit_progress_at(a, number, MSG_PROGRESS_TICK, now + 100 * NS_PER_MS, 50);
    emit_progress_at(a, number, MSG_PROGRESS_TICK, now + 200 * NS_PER_MS, 50 + FAKE_OK_PER_S / 10);
    fake_later_add(a, l->duration_ns / NS_PER_MS, end_load, number, mem_dup(l, sizeof(*l)));
}

static void note_load(struct fake_world *w, const struct msg_load *l)
{
    cpu_set_t own;
    cpu_set_t both;
    uint64_t gap_ns = clock_now_ns() - w->load_end_ns;
    if (parse_cpus(msg_text(l->cpus), &own, "", NULL) == ERR_OK) {
        CPU_AND(&both, &own, &w->server_cpus[l->port % FAKE_SERVERS]);
        w->shared += CPU_COUNT(&both) > 0;
    }
    if (w->loaded_port == l->port && gap_ns < w->gap_ns)
        w->gap_ns = gap_ns;
    w->loaded_port = l->port;
}

static void begin_load(struct fake_agent *a, const struct msg_command *c)
{
    const struct msg_load *l = &c->u.load;
    if (fake_chance(a->world, a->world->faults.refused)) {
        emit_done(a, c->number, ERR_FAILED, "no connection could be opened: refused");
        return;
    }
    note_load(a->world, l);
    a->load = c->number;
    emit_progress(a, c->number, MSG_PROGRESS_WARMUP_START);
    fake_later_add(a, l->warmup_ns / NS_PER_MS, start_window, c->number, mem_dup(l, sizeof(*l)));
}

static void server_dies(struct fake_agent *a, uint64_t number, void *data)
{
    (void)data;
    if (a->server != number)
        return;
    struct msg_event e = {
        .u.exited = {
            .proc = a->server, .status = -1, .signal = 11, .log_tail = (char *)(uintptr_t) "segfault"}};
    a->server = 0;
    fake_emit(a, &e, 0, MSG_EVENT_EXITED);
}

static void start(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.started = {.proc = c->u.start.proc, .pid = 4711, .startup_ns = 1000}};
    if (c->u.start.ready != MSG_READY_EXIT) {
        a->server = c->u.start.proc;
        a->world->starts++;
        cpu_set_t *cpus = &a->world->server_cpus[c->u.start.ready_port % FAKE_SERVERS];
        if (parse_cpus(msg_text(c->u.start.cpus), cpus, "", NULL) != ERR_OK)
            CPU_ZERO(cpus);
        if (fake_chance(a->world, a->world->faults.server_die))
            fake_later_add(a, fake_draw(a->world) % 40, server_dies, a->server, NULL);
    }
    fake_emit(a, &e, c->number, MSG_EVENT_STARTED);
}

static void stop(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.exited = {.proc = c->u.stop.proc, .asked = true}};
    if (a->server == c->u.stop.proc)
        a->server = 0;
    fake_emit(a, &e, c->number, MSG_EVENT_EXITED);
}

static void sample(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {.u.sampled = {.at_ns = clock_now_ns(), .busy_ns = clock_now_ns()}};
    e.u.sampled.proc_count = c->u.sample.proc_count;
    for (size_t i = 0; i < c->u.sample.proc_count; i++)
        e.u.sampled.procs[i] = (struct msg_proc_sample){
            .proc = c->u.sample.procs[i], .alive = true, .cpu_ns = clock_now_ns() / 2, .rss_bytes = 1 << 20};
    fake_emit(a, &e, c->number, MSG_EVENT_SAMPLED);
}

static void files(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {0};
    if (a->world->file_bytes == 0) {
        e.u.files.count = c->u.files.count;
        e.u.files.items = mem_zalloc(e.u.files.count, sizeof *e.u.files.items);
    }
    for (size_t i = 0; i < e.u.files.count; i++) {
        memcpy(e.u.files.items[i].hash, c->u.files.items[i].hash, MSG_HASH_BYTES);
        e.u.files.items[i].have_bytes = i;
    }
    fake_emit(a, &e, c->number, MSG_EVENT_FILES);
    free(e.u.files.items);
}

void fake_host_handle(struct fake_agent *a, const struct msg_command *c)
{
    struct msg_event e = {0};
    bool held = strcmp(a->held_job, msg_text(c->job)) == 0 && a->held_run <= c->run;
    if (c->kind == MSG_COMMAND_JOB_OPEN) {
        mem_set_string(&a->held_job, c->job);
        a->held_run = c->run;
        a->held_controller = c->controller;
        emit_done(a, c->number, ERR_OK, NULL);
        return;
    }
    if (!held) {
        struct msg_event refused = {.code = c->kind == MSG_COMMAND_JOB_CLOSE ? ERR_OK : ERR_NOT_NOW,
                                    .text = (char *)(uintptr_t) "no such job is open here",
                                    .job = c->job,
                                    .run = c->run,
                                    .controller = c->controller};
        fake_emit_for(a, &refused, c->number, MSG_EVENT_DONE);
        return;
    }
    switch (c->kind) {
    case MSG_COMMAND_JOB_CLOSE:
        a->server = 0;
        a->load = 0;
        emit_done(a, c->number, ERR_OK, NULL);
        mem_set_string(&a->held_job, "");
        break;
    case MSG_COMMAND_START:
        start(a, c);
        break;
    case MSG_COMMAND_STOP:
        stop(a, c);
        break;
    case MSG_COMMAND_CHECK:
        e.u.checked.ok = true;
        fake_emit(a, &e, c->number, MSG_EVENT_CHECKED);
        break;
    case MSG_COMMAND_LOAD:
        begin_load(a, c);
        break;
    case MSG_COMMAND_SAMPLE:
        sample(a, c);
        break;
    case MSG_COMMAND_FILES:
        files(a, c);
        break;
    case MSG_COMMAND_CHUNK:
        a->world->file_bytes += c->u.chunk.data.len;
        emit_done(a, c->number, ERR_OK, NULL);
        break;
    case MSG_COMMAND_JOB_OPEN:
    case MSG_COMMAND_COUNT:
        emit_done(a, c->number, ERR_UNSUPPORTED, "not in this world");
        break;
    }
}
