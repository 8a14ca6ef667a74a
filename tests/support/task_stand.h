#ifndef TESTS_SUPPORT_TASK_STAND_H
#define TESTS_SUPPORT_TASK_STAND_H
/*
 * A task of job "job-1" on a loop of its own: a test gives it commands by hand, and every event it emits is
 * kept. Its supervisor is the test program itself, so main begins with supervisor_main. One thread. A test
 * that takes longer than WAIT_NS fails.
 */
#include "agent/task/task.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

#define STAND_EVENTS_MAX 64u

struct stand {
    struct scratch scratch; /* the state directory */
    uv_loop_t loop;
    uint64_t limit_ns; /* for the whole test */
    char *load_program;
    struct task *task;
    struct msg_event events[STAND_EVENTS_MAX]; /* copies, in order */
    size_t count;
    uint64_t next_number;
    bool closed;
};

/* For cmocka: the state is a struct stand with an open task that has a workspace. */
int stand_set_up(void **state);
int stand_tear_down(void **state);
void stand_open(struct stand *s, bool workspace);
void stand_close(struct stand *s);

/* Commands; each returns its number. */
uint64_t stand_give(struct stand *s, struct msg_command *command);
uint64_t stand_start(struct stand *s, struct msg_start start, char **argv);
uint64_t stand_start_shell(struct stand *s, struct msg_start start, const char *script);
/* tool_target on this port; it listens after `delay_ms` (NULL = at once). */
uint64_t stand_start_server(struct stand *s, uint32_t proc, uint16_t port, const char *delay_ms);
uint64_t stand_stop(struct stand *s, uint32_t proc);

/* Parts of commands. */
char *stand_word(const char *text); /* a literal; the task copies what it keeps */
uint16_t stand_free_port(void);
struct msg_start stand_http_start(uint32_t proc, uint16_t port);
struct msg_command stand_load_command(uint32_t proc, uint16_t port);

/* What was emitted so far. */
size_t stand_answers(const struct stand *s, uint64_t number);
const struct msg_event *stand_answer(const struct stand *s, uint64_t number); /* the first, or NULL */

/* Runs the loop until it is there. Events stay where they are. */
const struct msg_event *stand_wait_answer(struct stand *s, uint64_t number);
const struct msg_event *stand_wait_unasked(struct stand *s, enum msg_event_kind kind);

/* It is a DONE of this code, and `part` is in its text. */
void stand_expect_done(const struct msg_event *e, enum err code, const char *part);

#endif
