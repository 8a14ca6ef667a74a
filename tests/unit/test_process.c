/* Process sets with real children: starting, output, figures, stopping. */
#include "agent/process/supervisor.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/process_world.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct world_options with_cgroup = {.no_cgroup = false};
static const struct world_options without_cgroup = {.no_cgroup = true};

static int setup(void **state)
{
    struct world *w = mem_zalloc(1, sizeof *w);
    world_init(w, *state);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    world_fini(w);
    free(w);
    return 0;
}

static void test_exit(void **state)
{
    struct world *w = *state;
    uint64_t before_ns = clock_now_ns();
    world_run(w, 1, "exit=7", NULL);
    assert_true(w->procs[1].spawned_at_ns >= before_ns && w->procs[1].spawned_at_ns <= clock_now_ns());
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 7);
    assert_int_equal(w->procs[1].exit.signal, 0);
    assert_false(w->procs[1].exit.asked);
    assert_false(w->procs[1].exit.lapsed);
    assert_int_equal(w->procs[1].exit.left_behind, 0);
    world_run(w, 2, "abort", NULL);
    world_wait_count(w, &w->procs[2].exits, 1);
    assert_int_equal(w->procs[2].exit.status, -1);
    assert_int_equal(w->procs[2].exit.signal, SIGABRT);
}

/* ---- refusals ------------------------------------------------------------------------------------- */

static void expect_refused(struct world *w, const struct process_spec *spec, enum err e, const char *text)
{
    struct err_detail d = {""};
    assert_int_equal(world_start(w, 1, "", spec, &d), ERR_OK);
    world_wait(w, &w->procs[1].answered);
    assert_int_equal(w->procs[1].start_error, e);
    assert_int_equal(w->procs[1].pid, -1);
    if (strstr(w->procs[1].start_text, text) == NULL)
        fail_msg("'%s' is not in: %s", text, w->procs[1].start_text);
    struct process_usage usage;
    assert_int_equal(process_usage(w->set, 1, &usage), ERR_NOT_FOUND);
}

static char *make_file(struct world *w, const char *name, const char *text, mode_t mode)
{
    char *path = mem_printf("%s/%s", w->scratch.dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void test_cannot_run(void **state)
{
    struct world *w = *state;
    char missing[] = "no-such-program";
    char relative[] = "./missing";
    char *argv[] = {missing, NULL};
    expect_refused(w, &(struct process_spec){.argv = argv}, ERR_NOT_FOUND,
                   "cannot run 'no-such-program': no such program in PATH (");
    char path[] = "PATH=/nowhere";
    char *env[] = {path, NULL};
    expect_refused(w, &(struct process_spec){.argv = argv, .env = env}, ERR_NOT_FOUND, "in PATH (/nowhere)");
    /* Lies beside most servers, but not in an ordinary PATH. */
    char system_program[] = "ldconfig";
    argv[0] = system_program;
    if (access("/sbin/ldconfig", X_OK) == 0)
        expect_refused(w, &(struct process_spec){.argv = argv, .env = env}, ERR_NOT_FOUND, "but there is /");
    argv[0] = relative;
    expect_refused(w, &(struct process_spec){.argv = argv}, ERR_NOT_FOUND, "no such file (looked for in '");
    argv[0] = w->scratch.dir;
    expect_refused(w, &(struct process_spec){.argv = argv}, ERR_DENIED, "it is a directory");
    argv[0] = make_file(w, "plain", "x", 0644);
    expect_refused(w, &(struct process_spec){.argv = argv}, ERR_DENIED, "not executable");
    free(argv[0]);
    argv[0] = make_file(w, "script", "#!/no/such/interpreter\n", 0755);
    expect_refused(w, &(struct process_spec){.argv = argv}, ERR_NOT_FOUND, "the interpreter");
    free(argv[0]);
    expect_refused(w, &(struct process_spec){.dir = "/no/such/dir"}, ERR_NOT_FOUND,
                   "cannot enter directory '/no/such/dir': No such file");
    expect_refused(w, &(struct process_spec){.cpus = "1022-1023"}, ERR_INVALID,
                   "on CPUs 1022-1023: this host has ");
    expect_refused(w, &(struct process_spec){.cpus = "0,1023"}, ERR_INVALID,
                   "on CPUs 0,1023: this host has 0");
}

static void test_refused_at_once(void **state)
{
    struct world *w = *state;
    struct err_detail d = {""};
    char *none[] = {NULL};
    assert_int_equal(world_start(w, 1, "", &(struct process_spec){.argv = none}, &d), ERR_INVALID);
    assert_int_equal(world_start(w, 1, "", &(struct process_spec){.dir = "tmp"}, &d), ERR_INVALID);
    assert_int_equal(world_start(w, 1, "", &(struct process_spec){.cpus = "1-"}, &d), ERR_INVALID);
    assert_int_equal(
        world_start(w, 1, "", &(struct process_spec){.out_bytes_max = LIMIT_RESULT_BYTES + 1}, &d),
        ERR_TOO_BIG);
    char *words[LIMIT_ARGV_COUNT + 2] = {NULL};
    char word[] = "exit=0";
    char *tool = mem_printf("%s/tool_tree", world_tools());
    words[0] = tool;
    for (size_t i = 1; i <= LIMIT_ARGV_COUNT; i++)
        words[i] = word;
    assert_int_equal(world_start(w, 1, "", &(struct process_spec){.argv = words}, &d), ERR_TOO_BIG);
    words[LIMIT_ARGV_COUNT] = NULL;
    world_run(w, 1, "", &(struct process_spec){.argv = words});
    char *big = mem_alloc(LIMIT_COMMAND_BYTES);
    memset(big, 'x', LIMIT_COMMAND_BYTES);
    memcpy(big, "out=", 4);
    big[LIMIT_COMMAND_BYTES - 1 - (strlen(tool) + 1)] = '\0';
    words[1] = big;
    words[2] = NULL;
    world_run(w, 2, "", &(struct process_spec){.argv = words});
    big[LIMIT_COMMAND_BYTES - 1 - (strlen(tool) + 1)] = 'x';
    big[LIMIT_COMMAND_BYTES - (strlen(tool) + 1)] = '\0';
    assert_int_equal(world_start(w, 3, "", &(struct process_spec){.argv = words}, &d), ERR_TOO_BIG);
    assert_non_null(strstr(d.text, "over 98304 bytes"));
    assert_int_equal(world_start(w, 1, "exit=0", NULL, &d), ERR_EXISTS);
    world_wait_count(w, &w->procs[2].exits, 1);
    free(big);
    free(tool);
}

static void test_most_at_once(void **state)
{
    struct world *w = *state;
    struct err_detail d = {""};
    for (uint32_t i = 0; i < PROCESS_MAX; i++)
        assert_int_equal(world_start(w, i, "wait", NULL, &d), ERR_OK);
    for (uint32_t i = 0; i < PROCESS_MAX; i++)
        world_wait(w, &w->procs[i].answered);
    assert_int_equal(world_start(w, PROCESS_MAX, "wait", NULL, &d), ERR_TOO_BIG);
    process_stop(w->set, 0);
    world_wait_count(w, &w->procs[0].exits, 1);
    assert_int_equal(world_survivors(w->mark), PROCESS_MAX - 1);
}

/* ---- surroundings and output ---------------------------------------------------------------------- */

static void expect_output(struct world *w, uint32_t proc, const char *expected)
{
    size_t len = 0;
    bool truncated = true;
    char *out = process_take_output(w->set, proc, &len, &truncated);
    assert_non_null(out);
    assert_string_equal(out, expected);
    assert_int_equal(len, strlen(expected));
    assert_false(truncated);
    free(out);
    assert_null(process_take_output(w->set, proc, &len, &truncated));
}

static void test_surroundings(void **state)
{
    struct world *w = *state;
    char own[] = "OWN=a=b c";
    char *env[] = {own, NULL};
    assert_int_equal(setenv("INHERITED", "yes", 1), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", "/run/agent", 1), 0);
    signal(SIGUSR1, SIG_IGN);
    world_run(w, 1, "env=OWN env=INHERITED env=PWD env=NOTIFY_SOCKET cwd cpus fds session oom",
              &(struct process_spec){.env = env, .cpus = "0", .out_bytes_max = 4096});
    signal(SIGUSR1, SIG_DFL);
    world_wait_count(w, &w->procs[1].exits, 1);
    char *expected =
        mem_printf("a=b c\nyes\n%s\n(none)\n%s\n0\n0 1 2 \nown odd=0\n800\n", w->scratch.dir, w->scratch.dir);
    expect_output(w, 1, expected);
    free(expected);
}

static void test_path_of_child(void **state)
{
    struct world *w = *state;
    char *path = mem_printf("PATH=/nowhere:%s", world_tools());
    char *env[] = {path, NULL};
    char name[] = "tool_tree";
    char word[] = "out=found";
    char *argv[] = {name, word, NULL};
    world_run(w, 1, "", &(struct process_spec){.argv = argv, .env = env, .out_bytes_max = 100});
    world_wait_count(w, &w->procs[1].exits, 1);
    expect_output(w, 1, "found\n");
    free(path);
}

static void test_lines(void **state)
{
    struct world *w = *state;
    char *longest = mem_alloc(5001);
    memset(longest, 'l', 5000);
    longest[5000] = '\0';
    char *words = mem_printf("err=first err= err=%s err=after part=last", longest);
    world_run(w, 1, words, &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].exits, 1);
    longest[4096] = '\0';
    char *expected = mem_printf("first\n\n%s\nafter\nlast\n", longest);
    assert_string_equal(w->procs[1].text.data, expected);
    free(expected);
    free(words);
    free(longest);
}

static void test_line_comes_at_once(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "ready wait", &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].lines, 1);
    char expected[64];
    snprintf(expected, sizeof expected, "ready %d\n", (int)w->procs[1].pid);
    assert_string_equal(w->procs[1].text.data, expected);
    assert_int_equal(w->procs[1].exits, 0);
}

static void test_log(void **state)
{
    struct world *w = *state;
    size_t len = 0;
    uint64_t dropped = 1;
    world_run(w, 1, "out=one err=two out=three err=four", NULL);
    world_wait_count(w, &w->procs[1].exits, 1);
    char *log = process_read_log(w->set, 1, &len, &dropped);
    assert_string_equal(log, "one\ntwo\nthree\nfour\n");
    assert_int_equal(len, strlen(log));
    assert_int_equal(dropped, 0);
    free(log);
    log = process_read_log_tail(w->set, 1, 2);
    assert_string_equal(log, "three\nfour\n");
    free(log);
    world_run(w, 2, "out=before nul out=after", NULL);
    world_wait_count(w, &w->procs[2].exits, 1);
    log = process_read_log_tail(w->set, 2, 2);
    assert_string_equal(log, " nul\nafter\n");
    free(log);
    assert_null(process_read_log(w->set, 9, &len, &dropped));
    bool truncated = false;
    assert_null(process_take_output(w->set, 1, &len, &truncated));
}

static void test_flood(void **state)
{
    struct world *w = *state;
    size_t len = 0;
    uint64_t dropped = 0;
    world_run(w, 1, "out=head flood=1000000 out=tail", NULL);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 0);
    char *log = process_read_log(w->set, 1, &len, &dropped);
    assert_int_equal(len, LIMIT_LOG_HEAD_BYTES + LIMIT_LOG_TAIL_BYTES);
    assert_int_equal(dropped, 5 + 100000000 + 5 - len);
    assert_memory_equal(log, "head\nabcdef", 11);
    assert_string_equal(log + len - 5, "tail\n");
    free(log);
    char *path = mem_printf("%s/1-tool_tree.log", w->scratch.dir);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= LIMIT_LOG_HEAD_BYTES + LIMIT_LOG_TAIL_BYTES + 8);
    free(path);
}

static void test_output_capped(void **state)
{
    struct world *w = *state;
    size_t len = 0;
    bool truncated = false;
    world_run(w, 1, "flood=20 err=aside", &(struct process_spec){.out_bytes_max = 1999});
    world_run(w, 2, "flood=20", &(struct process_spec){.out_bytes_max = 2000});
    world_wait_count(w, &w->procs[1].exits, 1);
    world_wait_count(w, &w->procs[2].exits, 1);
    char *out = process_take_output(w->set, 1, &len, &truncated);
    assert_int_equal(len, 1999);
    assert_true(truncated);
    free(out);
    out = process_take_output(w->set, 2, &len, &truncated);
    assert_int_equal(len, 2000);
    assert_false(truncated);
    free(out);
    char *log = process_read_log_tail(w->set, 1, 100);
    assert_string_equal(log, "aside\n");
    free(log);
}

static void test_flood_of_lines(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "floodlines=100000 exit=3", &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 3);
    assert_true(w->procs[1].lines > 100 && w->procs[1].lines <= 100000);
}

/* What a full disk does: here a limit on the size of files, which the supervisor inherits. */
static void test_output_lost(void **state)
{
    struct world *w = *state;
    struct rlimit before;
    struct rlimit small;
    size_t len = 0;
    uint64_t dropped = 0;
    bool truncated = false;
    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); /* our own log may be longer than that already */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    world_run(w, 1, "flood=20 floodlines=20 exit=4", &(struct process_spec){.out_bytes_max = 4096});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.status, 4);
    char *log = process_read_log(w->set, 1, &len, &dropped);
    assert_int_equal(len, 1000);
    assert_int_equal(dropped, 1000);
    free(log);
    char *out = process_take_output(w->set, 1, &len, &truncated);
    assert_true(truncated && len == 1000);
    free(out);
}

/* ---- figures -------------------------------------------------------------------------------------- */

static void test_usage(void **state)
{
    struct world *w = *state;
    struct process_usage u;
    assert_int_equal(process_usage(w->set, 1, &u), ERR_NOT_FOUND);
    world_run(w, 1, "touch=32 spinchild=60 spin=60 daemon children=2 ready wait",
              &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].lines, 1);
    assert_int_equal(process_usage(w->set, 1, &u), ERR_OK);
    assert_true(u.alive);
    assert_int_equal(u.processes, 4);
    assert_true(u.rss_bytes > 32 * 1024 * 1024 && u.rss_bytes < UINT64_C(4) << 30);
    assert_in_range(u.cpu_ns, 110 * NS_PER_MS, 10 * NS_PER_S); /* waited-for children count in 10 ms ticks */
    uint64_t cpu_ns = u.cpu_ns;
    assert_true(process_set_own_cpu_ns(w->set) > 0);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(process_usage(w->set, 1, &u), ERR_OK);
    assert_false(u.alive);
    assert_int_equal(u.processes, 0);
    assert_int_equal(u.rss_bytes, 0);
    assert_true(u.cpu_ns >= cpu_ns);
    assert_true(process_set_own_cpu_ns(w->set) > 0);
    world_run(w, 2, "spin=60", NULL); /* never looked at while it lives: its supervisor has the account */
    world_wait_count(w, &w->procs[2].exits, 1);
    assert_int_equal(process_usage(w->set, 2, &u), ERR_OK);
    assert_in_range(u.cpu_ns, 50 * NS_PER_MS, 10 * NS_PER_S);
}

static void test_forgets_the_oldest(void **state)
{
    struct world *w = *state;
    struct process_usage u;
    char *log = mem_printf("%s/1-tool_tree.log", w->scratch.dir);
    /* One more than is kept, and one more again because the last is there while the one before goes. */
    for (uint32_t i = 1; i <= PROCESS_KEPT_MAX + 2; i++) {
        world_run(w, i, "out=x", NULL);
        world_wait_count(w, &w->procs[i].exits, 1);
        if (i == PROCESS_KEPT_MAX)
            assert_int_equal(access(log, F_OK), 0);
    }
    assert_int_equal(process_usage(w->set, 1, &u), ERR_NOT_FOUND);
    assert_int_equal(access(log, F_OK), -1);
    assert_int_equal(process_usage(w->set, 3, &u), ERR_OK);
    free(log);
}

/* ---- stopping ------------------------------------------------------------------------------------- */

static void test_stop(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "wait", &(struct process_spec){.grace_ns = UINT64_MAX});
    process_stop(w->set, 1);
    process_stop(w->set, 1);
    process_stop(w->set, 2);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_true(w->procs[1].exit.asked);
    assert_int_equal(w->procs[1].exit.status, -1);
    assert_int_equal(w->procs[1].exit.signal, SIGTERM);
}

static void test_stop_while_starting(void **state)
{
    struct world *w = *state;
    struct err_detail d;
    assert_int_equal(world_start(w, 1, "children=2 wait", NULL, &d), ERR_OK);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_true(w->procs[1].answered);
    assert_int_equal(w->procs[1].start_error, ERR_OK);
    assert_true(w->procs[1].exit.asked);
}

/* The first process obeys; the others have what is left of the grace to do so too. */
static void test_stop_leaves_grace(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "slowchild=100 ready wait",
              &(struct process_spec){.lines = true, .grace_ns = 60 * NS_PER_S});
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.signal, SIGTERM);
    char *tail = process_read_log_tail(w->set, 1, 1);
    assert_string_equal(tail, "said goodbye\n");
    free(tail);
}

static void test_stop_stopped(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "wait", &(struct process_spec){.grace_ns = 60 * NS_PER_S});
    assert_int_equal(kill(w->procs[1].pid, SIGSTOP), 0);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.signal, SIGTERM);
}

static void test_stop_stubborn(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "ignore daemon children=5 daemon ready wait", &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].lines, 1);
    assert_int_equal(world_survivors(w->mark), 8);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(w->procs[1].exit.signal, SIGKILL);
    assert_true(w->procs[1].exit.asked);
    assert_int_equal(world_survivors(w->mark), 0);
}

static void test_first_leaves_others(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "daemon children=3 daemon exit=5", NULL);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_int_equal(w->procs[1].exit.status, 5);
    assert_int_equal(w->procs[1].exit.left_behind, 5);
    assert_false(w->procs[1].exit.asked);
}

static void test_trees_apart(void **state)
{
    struct world *w = *state;
    struct process_usage u;
    world_run(w, 1, "daemon children=1 ready wait", &(struct process_spec){.lines = true});
    world_run(w, 2, "daemon children=2 ready wait", &(struct process_spec){.lines = true});
    world_wait_count(w, &w->procs[1].lines, 1);
    world_wait_count(w, &w->procs[2].lines, 1);
    assert_int_equal(process_usage(w->set, 1, &u), ERR_OK);
    assert_int_equal(u.processes, 3);
    process_stop(w->set, 1);
    world_wait_count(w, &w->procs[1].exits, 1);
    assert_int_equal(process_usage(w->set, 2, &u), ERR_OK);
    assert_int_equal(u.processes, 4);
    assert_int_equal(world_survivors(w->mark), 4);
    assert_int_equal(w->procs[2].exits, 0);
}

/* ---- closing -------------------------------------------------------------------------------------- */

static void test_close_alive(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "ignore daemon children=2 ready wait", &(struct process_spec){.lines = true});
    world_run(w, 2, "wait", NULL);
    world_wait_count(w, &w->procs[1].lines, 1);
    world_close(w);
    assert_int_equal(world_survivors(w->mark), 0);
    assert_int_equal(w->procs[1].exits, 0);
}

static void test_close_while_stopping(void **state)
{
    struct world *w = *state;
    world_run(w, 1, "ignore daemon children=2 ready wait",
              &(struct process_spec){.lines = true, .grace_ns = UINT64_MAX});
    world_wait_count(w, &w->procs[1].lines, 1);
    process_stop(w->set, 1);
    world_close(w);
}

static void test_close_while_starting(void **state)
{
    struct world *w = *state;
    struct err_detail d;
    assert_int_equal(world_start(w, 1, "daemon wait", NULL, &d), ERR_OK);
    world_close(w);
    assert_true(w->procs[1].answered);
    assert_int_equal(w->procs[1].start_error, ERR_CANCELLED);
}

static void test_close_in_callback(void **state)
{
    struct world *w = *state;
    w->close_in_callback = true;
    world_run(w, 2, "daemon wait", NULL);
    world_run(w, 1, "err=a err=b err=c children=1 wait", &(struct process_spec){.lines = true});
    world_wait(w, &w->closed);
    assert_int_equal(w->procs[1].lines, 1);
}

static void test_close_empty(void **state)
{
    world_close(*state);
}

static void test_bad_set(void **state)
{
    (void)state;
    struct process_set *set = NULL;
    struct err_detail d;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct process_set_options options = {.loop = &loop, .job = "j", .log_dir = "/no/such/dir"};
    assert_int_equal(process_set_new(&options, &set, &d), ERR_NOT_FOUND);
    assert_non_null(strstr(d.text, "/no/such/dir"));
    options.log_dir = "/dev/null";
    assert_int_equal(process_set_new(&options, &set, &d), ERR_INVALID);
    assert_int_equal(uv_loop_close(&loop), 0);
}

#define BOTH(f)                                                                                              \
    {#f, f, setup, teardown, (void *)(uintptr_t)&with_cgroup},                                               \
    {                                                                                                        \
#f " without a cgroup", f, setup, teardown, (void *)(uintptr_t)&without_cgroup                       \
    }

int main(int argc, char **argv)
{
    int code = 0;
    if (supervisor_main(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        BOTH(test_exit),
        BOTH(test_cannot_run),
        BOTH(test_refused_at_once),
        BOTH(test_most_at_once),
        BOTH(test_surroundings),
        BOTH(test_path_of_child),
        BOTH(test_lines),
        BOTH(test_line_comes_at_once),
        BOTH(test_log),
        BOTH(test_flood),
        BOTH(test_output_capped),
        BOTH(test_flood_of_lines),
        BOTH(test_output_lost),
        BOTH(test_usage),
        BOTH(test_forgets_the_oldest),
        BOTH(test_stop),
        BOTH(test_stop_while_starting),
        BOTH(test_stop_leaves_grace),
        BOTH(test_stop_stopped),
        BOTH(test_stop_stubborn),
        BOTH(test_first_leaves_others),
        BOTH(test_trees_apart),
        BOTH(test_close_alive),
        BOTH(test_close_while_stopping),
        BOTH(test_close_while_starting),
        BOTH(test_close_in_callback),
        BOTH(test_close_empty),
        cmocka_unit_test(test_bad_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
