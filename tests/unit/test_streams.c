/* What is printed is out or said to be lost, and never goes into a file that took a closed stream's number.
 */
#include "common/mem.h"
#include "common/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In a child, so that the test keeps its own streams: the child's exit status. */
static int in_child(int (*what)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(what());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int with_all_closed(void)
{
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    streams_init();
    int fd = open("/dev/null", O_RDWR);
    char byte = 0;
    bool refused = read(0, &byte, 1) < 0 && write(1, &byte, 1) < 0 && write(2, &byte, 1) < 0;
    return fd > 2 && refused ? 0 : 1;
}

static void test_closed_streams_give_no_numbers_away(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_all_closed), 0);
}

static int with_open_ones(void)
{
    int before = fcntl(1, F_GETFL);
    streams_init();
    return fcntl(1, F_GETFL) == before ? streams_end("test", 0, 3) : 1;
}

static void test_open_streams_stay(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_open_ones), 0);
}

static int print_into_full(int code)
{
    if (freopen("/dev/full", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
        return 100;
    printf("a line\n");
    return streams_end("test", code, 3);
}

static int print_well(void)
{
    return print_into_full(0);
}

static int print_after_failure(void)
{
    return print_into_full(2);
}

static int print_and_flush(void)
{
    if (freopen("/dev/full", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
        return 100;
    printf("a line\n");
    fflush(stdout); /* fails; nothing is left to flush at the end */
    return streams_end("test", 0, 3);
}

static void test_lost_output_is_a_failure(void **state)
{
    (void)state;
    assert_int_equal(in_child(print_well), 3);
    assert_int_equal(in_child(print_after_failure), 2);
    assert_int_equal(in_child(print_and_flush), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_streams_give_no_numbers_away),
        cmocka_unit_test(test_open_streams_stay),
        cmocka_unit_test(test_lost_output_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
