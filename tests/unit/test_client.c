/* What the command line says when a controller does not let it in: a program that is stopped, one that does
 * not answer, and none are three things, with three things to do. */
#include "common/clock.h"
#include "controller/cli/client.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct scratch scratch;
    char address[96];
    pid_t listener; /* 0 = none */
    struct err_detail d;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    scratch_init(&f.scratch);
    snprintf(f.address, sizeof f.address, "ipc://%s/sock", f.scratch.dir);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->listener > 0) {
        (void)kill(f->listener, SIGKILL);
        (void)waitpid(f->listener, NULL, 0);
    }
    scratch_fini(&f->scratch);
    return 0;
}

/* Listens, takes each connection, and closes it at once or never says a word on it. */
NORETURN static void listen_for_ever(const struct fixture *f, bool close_at_once)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", f->scratch.dir);
    if (bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0 || listen(fd, 8) != 0)
        _exit(1);
    (void)raise(SIGSTOP); /* it is there: whoever waits for that sees it */
    for (;;) {
        int peer = accept(fd, NULL, NULL);
        if (peer >= 0 && close_at_once)
            (void)close(peer);
    }
}

/* As a process of its own that is stopped. */
static void start_listener(struct fixture *f, bool close_at_once)
{
    int status = 0;
    f->listener = fork();
    assert_true(f->listener >= 0);
    if (f->listener == 0)
        listen_for_ever(f, close_at_once);
    assert_int_equal(waitpid(f->listener, &status, WUNTRACED), f->listener);
    assert_true(WIFSTOPPED(status));
}

static void expect_unreached(struct fixture *f, const char *word)
{
    struct client *client = NULL;
    const struct place place = {.controller = f->address};
    assert_int_equal(client_open(&place, &client, &f->d), ERR_UNREACHABLE);
    assert_null(client);
    assert_non_null(strstr(f->d.text, f->address));
    if (strstr(f->d.text, word) == NULL)
        fail_msg("it says: %s", f->d.text);
}

static void test_no_controller_is_to_be_started(void **state)
{
    expect_unreached(*state, "Start one with 'splitbench controller'");
}

static void test_a_stopped_controller_is_to_go_on(void **state)
{
    struct fixture *f = *state;
    char word[64];
    start_listener(f, false);
    snprintf(word, sizeof word, "'kill -CONT %ld'", (long)f->listener);
    expect_unreached(f, word);
    assert_null(strstr(f->d.text, "Start one"));
}

static void test_a_controller_that_does_not_answer_is_named(void **state)
{
    struct fixture *f = *state;
    char word[64];
    start_listener(f, false);
    assert_int_equal(kill(f->listener, SIGCONT), 0);
    snprintf(word, sizeof word, "(process %ld) is there, but did not answer", (long)f->listener);
    expect_unreached(f, word);
    assert_null(strstr(f->d.text, "Start one"));
}

static void test_a_connection_that_is_closed_at_once_is_no_silence(void **state)
{
    struct fixture *f = *state;
    start_listener(f, true);
    assert_int_equal(kill(f->listener, SIGCONT), 0);
    expect_unreached(f, "ends at once");
    assert_null(strstr(f->d.text, "Start one"));
    assert_null(strstr(f->d.text, "network"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_controller_is_to_be_started, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stopped_controller_is_to_go_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_controller_that_does_not_answer_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_connection_that_is_closed_at_once_is_no_silence, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
