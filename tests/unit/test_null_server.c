#include "agent/load/null_server.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define REQUEST "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

static int set_up(void **state)
{
    static struct null_server server;
    struct err_detail d = {""};
    if (null_server_start(&server, &d) != ERR_OK)
        fail_msg("%s", d.text);
    *state = &server;
    return 0;
}

static int tear_down(void **state)
{
    struct null_server *server = *state;
    pid_t pid = server->pid;
    null_server_stop(server);
    assert_int_equal(server->pid, 0);
    assert_int_equal(kill(pid, 0), -1); /* ended and waited for */
    null_server_stop(server);           /* again, and nothing happens */
    return 0;
}

static int client_of(const struct null_server *server)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(server->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void expect_answer(int fd)
{
    char got[sizeof ANSWER] = "";
    assert_int_equal(recv(fd, got, sizeof got - 1, MSG_WAITALL), sizeof got - 1);
    assert_string_equal(got, ANSWER);
}

/* How many connections the server holds: its sockets but the listener. */
static size_t held_by(const struct null_server *server)
{
    char path[64];
    size_t sockets = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server->pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char target[64] = "";
        sockets += readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0 &&
                   strncmp(target, "socket:", 7) == 0;
    }
    closedir(dir);
    return sockets;
}

static void test_a_connection_is_kept(void **state)
{
    const struct null_server *server = *state;
    int first = client_of(server);
    int second = client_of(server);
    for (int i = 0; i < 3; i++) {
        send_text(first, REQUEST);
        expect_answer(first);
        send_text(second, REQUEST);
        expect_answer(second);
    }
    close(first);
    close(second);
}

/* A request that comes in two pieces is answered after the second. */
static void test_one_answer_for_each_end_of_a_head(void **state)
{
    const struct null_server *server = *state;
    int fd = client_of(server);
    int other = client_of(server);
    send_text(fd, "GET / HTTP/1.1\r\n");
    send_text(other, REQUEST);
    expect_answer(other); /* and the first piece was read before */
    assert_int_equal(recv(fd, &(char){0}, 1, MSG_DONTWAIT), -1);
    send_text(fd, "\r\n\r\n");
    expect_answer(fd);
    assert_int_equal(recv(fd, &(char){0}, 1, MSG_DONTWAIT), -1);
    close(other);
    close(fd);
}

static void test_both_ends_of_a_connection_are_met(void **state)
{
    const struct null_server *server = *state;
    size_t before = held_by(server);
    int fd = client_of(server);
    send_text(fd, REQUEST);
    expect_answer(fd);
    assert_int_equal(held_by(server), before + 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_int_equal(recv(fd, &(char){0}, 1, 0), 0); /* it closes too */
    close(fd);

    int reset = client_of(server);
    send_text(reset, REQUEST);
    expect_answer(reset);
    struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(reset, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(reset);
    fd = client_of(server);
    send_text(fd, REQUEST);
    expect_answer(fd); /* it goes on, and what was reset before is gone by now */
    assert_int_equal(held_by(server), before + 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_connection_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_answer_for_each_end_of_a_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_both_ends_of_a_connection_are_met, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
