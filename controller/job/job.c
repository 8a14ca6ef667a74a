#include "controller/job/job.h"

#include "common/log.h"
#include "common/mem.h"

#include <signal.h>

void job_wake_table(void *arg)
{
    struct job_table *t = arg;
    (void)uv_async_send(&t->wake);
}

void job_free(struct job *j)
{
    for (size_t i = 0; i < j->host_count; i++)
        run_host_fini(&j->run_hosts[i]);
    free(j->run_hosts);
    free(j->hosts);
    channel_free(j->channel);
    job_spec_free(j->spec);
    free(j->cancel_cause);
    free(j->waits);
    free(j);
}

void job_take_hosts(struct job *j, const struct fleet_host *hosts, size_t count)
{
    j->host_count = count;
    j->hosts = mem_zalloc(count + 1, sizeof *j->hosts);
    j->run_hosts = mem_zalloc(count + 1, sizeof *j->run_hosts);
    for (size_t i = 0; i < count; i++) {
        const struct fleet_host *h = &hosts[i];
        j->hosts[i] = (struct job_host){.agent = h->agent, .incarnation = h->incarnation};
        j->run_hosts[i] = (struct run_host){.agent = mem_strdup(h->name),
                                            .role = mem_strdup(h->role),
                                            .ordinal = h->ordinal,
                                            .address = mem_strdup(msg_text(h->address))};
        msg_host_copy(&j->run_hosts[i].facts, h->facts);
    }
}

/* ---- its thread ----------------------------------------------------------------------------------- */

static void *job_thread(void *arg)
{
    struct job *j = arg;
    const struct job_table_options *o = &j->table->o;
    const struct job_spec *s = j->spec;
    struct run_options options = {.job = s->id,
                                  .mode = s->mode,
                                  .experiment = s->experiment,
                                  .design = s->design,
                                  .files = &s->files,
                                  .base_dir = s->base_dir,
                                  .hosts = j->run_hosts,
                                  .host_count = j->host_count,
                                  .channel = j->channel,
                                  .store_path = o->store_path,
                                  .blob_dir = o->blob_dir,
                                  .own_boot_id = o->own_boot_id};
    run_job(&options, &j->outcome);
    channel_end(j->channel);
    return NULL;
}

/* Signals are the loop's; a job's thread takes none. */
static void start_thread(struct job *j)
{
    sigset_t all, before;
    must(sigfillset(&all) == 0);
    must(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    must(pthread_create(&j->thread, NULL, job_thread, j) == 0);
    must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static enum job_state do_start(struct job *j)
{
    j->channel = channel_new(
        &(struct channel_options){.host_count = j->host_count, .wake = job_wake_table, .arg = j->table});
    start_thread(j);
    return JOB_RUNNING;
}

/* What cannot be sent is answered at once: the job's thread waits for an answer to each command. */
static void send_command(struct job *j, const struct channel_op *op)
{
    enum err e =
        fleet_command(j->table->o.fleet, j->hosts[op->host].agent, j->spec->id, &op->command, op->tag);
    if (e == ERR_OK)
        return;
    struct msg_event answer = fleet_refusal(op->tag, j->spec->id, e);
    channel_deliver(j->channel, op->host, &answer);
    msg_event_fini(&answer);
}

void job_carry_out(struct job *j)
{
    struct channel_op op;
    while (j->channel != NULL && channel_take(j->channel, &op)) {
        struct job_host *h = &j->hosts[op.host];
        switch (op.kind) {
        case CHANNEL_OP_COMMAND:
            send_command(j, &op);
            break;
        case CHANNEL_OP_SETTLE:
            fleet_settle(j->table->o.fleet, h->agent, h->incarnation, op.number);
            break;
        case CHANNEL_OP_VIEW:
            j->view = op.view;
            break;
        case CHANNEL_OP_ENDED:
            job_handle(j, JOB_EVENT_RETURN); /* closes the channel: this was its last order */
            break;
        case CHANNEL_OP_COUNT:
            break;
        }
        channel_op_fini(&op);
    }
}

/* ---- the end -------------------------------------------------------------------------------------- */

static void store_outcome(struct store *s, void *arg)
{
    struct job *j = arg;
    struct run_outcome *o = &j->outcome;
    o->stored = store_set_job_state(s, j->spec->id, o->state, o->cause, o->exit_code, &j->refused) == ERR_OK;
}

static void on_outcome_stored(void *arg)
{
    struct job *j = arg;
    job_handle(j, j->outcome.stored ? JOB_EVENT_STORED : JOB_EVENT_REFUSED);
    job_wake_table(j->table);
}

static enum job_state do_store(struct job *j)
{
    store_worker_do(j->table->o.worker, store_outcome, on_outcome_stored, j);
    return JOB_STORING;
}

/* Its thread may have stored the outcome by itself. */
static enum job_state do_end(struct job *j)
{
    struct job_table *t = j->table;
    must(pthread_join(j->thread, NULL) == 0);
    for (size_t i = 0; i < j->host_count; i++)
        fleet_settle(t->o.fleet, j->hosts[i].agent, j->hosts[i].incarnation, j->hosts[i].last_event);
    fleet_release(t->o.fleet, j->spec->id);
    channel_free(j->channel);
    j->channel = NULL;
    t->schedule_wanted = true;
    return j->outcome.stored ? JOB_GONE : do_store(j);
}

/* It was queued: nothing has to end. */
static enum job_state do_withdraw(struct job *j)
{
    j->outcome = (struct run_outcome){.state = STORE_JOB_CANCELLED, .exit_code = RUN_EXIT_INFRA};
    snprintf(j->outcome.cause, sizeof j->outcome.cause, "%s", j->cancel_cause);
    return do_store(j);
}

static enum job_state do_cancel(struct job *j)
{
    channel_fail(j->channel, ERR_CANCELLED, j->cancel_cause);
    return JOB_CANCELLING;
}

static enum job_state do_wait(struct job *j)
{
    log_error("job_end_not_stored", "job=%s why=\"%s\"", j->spec->id, j->refused.text);
    return JOB_UNSTORED;
}

static enum job_state do_leave(struct job *j)
{
    (void)j;
    return JOB_GONE;
}

/* ---- states --------------------------------------------------------------------------------------- */

/* What each event does in each state; an empty cell is refused. */
static enum job_state (*const machine[JOB_STATE_COUNT][JOB_EVENT_COUNT])(struct job *) = {
    [JOB_QUEUED] = {[JOB_EVENT_START] = do_start, [JOB_EVENT_CANCEL] = do_withdraw},
    [JOB_RUNNING] = {[JOB_EVENT_CANCEL] = do_cancel, [JOB_EVENT_RETURN] = do_end},
    [JOB_CANCELLING] = {[JOB_EVENT_CANCEL] = do_cancel, [JOB_EVENT_RETURN] = do_end},
    [JOB_STORING] = {[JOB_EVENT_STORED] = do_leave, [JOB_EVENT_REFUSED] = do_wait},
    [JOB_UNSTORED] = {[JOB_EVENT_RETRY] = do_store},
};

bool job_permits(enum job_state state, enum job_event event)
{
    return machine[state][event] != NULL;
}

void job_handle(struct job *j, enum job_event event)
{
    static const char *const names[JOB_STATE_COUNT] = {
#define X(name, text) text,
        JOB_STATE_LIST(X)
#undef X
    };
    must(job_permits(j->state, event));
    enum job_state from = j->state;
    j->state = machine[from][event](j);
    log_debug("job_state", "job=%s from=%s to=%s", j->spec->id, names[from], names[j->state]);
}
