/* Counters of a tree on recorded /proc and cgroup directories, and who descends from whom. */
#include "agent/process/procstat.h"
#include "agent/process/usage.h"
#include "agent/telemetry/fields.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* CPU in ticks of user, system, reaped user, reaped system; RSS in pages. */
static void put_process(struct scratch *s, int pid, int ppid, const char *name, char state, const int cpu[4],
                        int rss)
{
    char file[16];
    char *text = mem_printf("%d (%s) %c %d 1 1 0 -1 4194304 97 0 0 0 %d %d %d %d 20 0 1 0 %d 3133440 %d "
                            "18446744073709551615 94706597265408 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
                            pid, name, state, ppid, cpu[0], cpu[1], cpu[2], cpu[3], 1000 + pid, rss);
    snprintf(file, sizeof file, "%d/stat", pid);
    scratch_put(s, file, text);
    free(text);
}

static void put_tree(struct scratch *s)
{
    scratch_put(s, "self/stat", "ignored");
    put_process(s, 1, 0, "init", 'S', (int[]){900, 900, 900, 900}, 9000);
    put_process(s, 10, 1, "sb-supervisor", 'S', (int[]){500, 500, 20, 3}, 500);
    put_process(s, 11, 10, "a) S 1 (b", 'S', (int[]){1, 2, 4, 8}, 100);
    put_process(s, 12, 11, "worker", 'R', (int[]){100, 0, 0, 0}, 10);
    put_process(s, 13, 11, "gone", 'Z', (int[]){7, 0, 0, 0}, 0);
    put_process(s, 5, 12, "low number", 'D', (int[]){0, 50, 0, 0}, 1); /* numbers wrap around */
    put_process(s, 14, 1, "stranger", 'S', (int[]){300, 300, 300, 300}, 3000);
}

static void test_descendants(void **state)
{
    struct scratch *s = *state;
    struct usage *u = NULL;
    struct usage_reading reading;
    put_tree(s);
    const struct usage_options options = {.proc_root = s->dir, .reaper = 10};
    assert_int_equal(usage_new(&options, &u, NULL), ERR_OK);
    assert_int_equal(usage_read(u, &reading, NULL), ERR_OK);
    uint64_t ticks = (20 + 3) + (1 + 2 + 4 + 8) + 100 + 7 + 50;
    assert_int_equal(reading.cpu_ns, ticks * NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    assert_int_equal(reading.processes, 3);
    assert_int_equal(reading.rss_bytes, 111 * sysconf(_SC_PAGESIZE));
    /* A member that vanishes between being counted there and here must not make time run backwards. */
    put_process(s, 12, 1, "worker", 'R', (int[]){100, 0, 0, 0}, 10);
    uint64_t before_ns = reading.cpu_ns;
    assert_int_equal(usage_read(u, &reading, NULL), ERR_OK);
    assert_int_equal(reading.cpu_ns, before_ns);
    assert_int_equal(reading.processes, 1);
    usage_free(u);
}

static void test_leaf(void **state)
{
    struct scratch *s = *state;
    struct usage *u = NULL;
    struct usage_reading reading;
    struct err_detail d;
    put_tree(s);
    scratch_put(s, "leaf/cpu.stat", "usage_usec 123456\nuser_usec 1\nsystem_usec 2\n");
    scratch_put(s, "leaf/cgroup.procs", "11\n12\n0\n13\n99\n");
    char *leaf = mem_printf("%s/leaf", s->dir);
    const struct usage_options options = {.proc_root = s->dir, .leaf = leaf, .reaper = 10};
    assert_int_equal(usage_new(&options, &u, NULL), ERR_OK);
    assert_int_equal(usage_read(u, &reading, &d), ERR_OK);
    assert_int_equal(reading.cpu_ns, 123456 * NS_PER_US);
    assert_int_equal(reading.processes, 2);
    assert_int_equal(reading.rss_bytes, 110 * sysconf(_SC_PAGESIZE));
    scratch_put(s, "leaf/cpu.stat", "user_usec 1\n");
    assert_int_equal(usage_read(u, &reading, &d), ERR_INVALID);
    usage_free(u);
    const struct usage_options missing = {.proc_root = s->dir, .leaf = "/no/such/leaf", .reaper = 10};
    u = NULL;
    assert_int_equal(usage_new(&missing, &u, &d), ERR_NOT_FOUND);
    assert_null(u);
    free(leaf);
}

/* A thread's context switches: voluntary, involuntary. */
static void put_thread(struct scratch *s, int pid, int tid, int voluntary, int involuntary)
{
    char *name = mem_printf("%d/task/%d/status", pid, tid);
    char *text =
        mem_printf("Name:\tx\nThreads:\t2\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
                   voluntary, involuntary);
    scratch_put(s, name, text);
    free(text);
    free(name);
}

static void remove_thread(struct scratch *s, int pid, int tid)
{
    char *command = mem_printf("rm -r %s/%d/task/%d", s->dir, pid, tid);
    assert_int_equal(system(command), 0);
    free(command);
}

static void expect_switches(struct usage *u, bool known, uint64_t voluntary, uint64_t involuntary)
{
    struct usage_reading reading;
    assert_int_equal(usage_read(u, &reading, NULL), ERR_OK);
    const struct figure *v = &reading.counters[FIGURE_SERVER_CONTEXT_SWITCHES_VOLUNTARY];
    const struct figure *i = &reading.counters[FIGURE_SERVER_CONTEXT_SWITCHES_INVOLUNTARY];
    assert_int_equal(v->known, known);
    assert_int_equal(i->known, known);
    assert_int_equal(v->value, voluntary);
    assert_int_equal(i->value, involuntary);
}

/* A server of two processes and three threads, below the subreaper 10. */
static void check_switches(struct scratch *s, struct usage *u)
{
    put_thread(s, 11, 11, 100, 1);
    put_thread(s, 11, 21, 10, 2);
    put_thread(s, 12, 12, 1000, 40);
    expect_switches(u, true, 1110, 43);
    put_thread(s, 12, 12, 1001, 40);
    put_thread(s, 11, 22, 3, 5); /* a new one: all it ever did is new */
    expect_switches(u, true, 1114, 48);
    expect_switches(u, true, 1114, 48);

    remove_thread(s, 11, 21); /* what it did last is lost: of this once nothing is known */
    expect_switches(u, false, 0, 0);
    expect_switches(u, true, 1104, 46);
    put_thread(s, 11, 22, 2, 5); /* another one has its number */
    expect_switches(u, false, 0, 0);
    expect_switches(u, true, 1103, 46);

    put_process(s, 11, 10, "master", 'S', (int[]){1, 2, 4, 9}, 100); /* a child came and went unseen */
    expect_switches(u, false, 0, 0);
    expect_switches(u, true, 1103, 46);

    scratch_put(s, "12/task/12/status", "Name:\tx\n"); /* what cannot be read is not zero */
    expect_switches(u, false, 0, 0);
    put_thread(s, 12, 12, 1002, 41);
    expect_switches(u, true, 1104, 47);
}

static void put_pair(struct scratch *s)
{
    put_process(s, 10, 1, "sb-supervisor", 'S', (int[]){500, 500, 0, 0}, 500);
    put_process(s, 11, 10, "master", 'S', (int[]){1, 2, 0, 0}, 100);
    put_process(s, 12, 11, "worker", 'R', (int[]){100, 0, 0, 0}, 10);
    put_process(s, 14, 1, "stranger", 'S', (int[]){300, 300, 300, 300}, 3000);
    put_thread(s, 14, 14, 100000, 100000);
}

static void test_switches_of_descendants(void **state)
{
    struct scratch *s = *state;
    struct usage *u = NULL;
    put_pair(s);
    const struct usage_options options = {.proc_root = s->dir, .reaper = 10};
    assert_int_equal(usage_new(&options, &u, NULL), ERR_OK);
    check_switches(s, u);
    usage_free(u);
}

static void test_switches_of_a_leaf(void **state)
{
    struct scratch *s = *state;
    struct usage *u = NULL;
    put_pair(s);
    scratch_put(s, "leaf/cpu.stat", "usage_usec 123456\nuser_usec 1\nsystem_usec 2\n");
    scratch_put(s, "leaf/cgroup.procs", "11\n12\n");
    char *leaf = mem_printf("%s/leaf", s->dir);
    const struct usage_options options = {.proc_root = s->dir, .leaf = leaf, .reaper = 10};
    assert_int_equal(usage_new(&options, &u, NULL), ERR_OK);
    check_switches(s, u);
    usage_free(u);
    free(leaf);
}

static void test_fields(void **state)
{
    (void)state;
    uint64_t n = 77;
    static const char *const bad[] = {"", " ", "x", "-1", "+1", "1x", "1.5", "18446744073709551616", "\n1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *at = bad[i];
        assert_false(fields_take(&at, &n));
        assert_ptr_equal(at, bad[i]);
        assert_int_equal(n, 77);
    }
    const char *line = "  7 -x 18446744073709551615\n8";
    assert_true(fields_take(&line, &n));
    assert_int_equal(n, 7);
    assert_true(fields_skip(&line, 1));
    assert_true(fields_take(&line, &n));
    assert_true(n == UINT64_MAX);
    assert_false(fields_skip(&line, 1));
    assert_false(fields_take(&line, &n));
}

static bool skip_worker(const struct procstat *p)
{
    return strcmp(p->name, "worker") == 0;
}

static void test_marks(void **state)
{
    struct scratch *s = *state;
    struct procstat_list list;
    put_tree(s);
    assert_int_equal(procstat_list_init(&list, s->dir, NULL), ERR_OK);
    assert_int_equal(list.count, 7);
    for (size_t i = 1; i < list.count; i++)
        assert_true(list.items[i - 1].pid < list.items[i].pid);
    assert_int_equal(procstat_mark_descendants(&list, 10, NULL), 4);
    assert_int_equal(procstat_mark_descendants(&list, 10, skip_worker), 2);
    assert_int_equal(procstat_mark_descendants(&list, 14, NULL), 0);
    assert_int_equal(procstat_mark_descendants(&list, 777, NULL), 0);
    assert_int_equal(procstat_mark_descendants(&list, 1, NULL), 6);
    procstat_list_fini(&list);
    assert_int_equal(procstat_list_init(&list, "/no/such/proc", NULL), ERR_NOT_FOUND);
    assert_int_equal(procstat_mark_descendants(&list, 1, NULL), 0);
    procstat_list_fini(&list);
}

static void test_stat_text(void **state)
{
    struct scratch *s = *state;
    struct procstat p = {.pid = 77};
    put_tree(s);
    assert_int_equal(procstat_read(s->dir, 11, &p), ERR_OK);
    assert_string_equal(p.name, "a) S 1 (b");
    assert_int_equal(p.ppid, 10);
    assert_int_equal(p.start_ticks, 1011);
    assert_int_equal(procstat_read(s->dir, 6, &p), ERR_NOT_FOUND);
    static const char *const bad[] = {"",
                                      "7",
                                      "7 (x",
                                      "7 x)",
                                      ") 7 (",
                                      "7 (x) S",
                                      "7 (x) S 1 1 1 0 -1 4 9 0 0 0 1 1 1",
                                      "x (x) S 1 1 1 0 -1 4 9 0 0 0 1 1 1 1 20 0 1 0 5 3 6",
                                      "7 (x) S 1 1 1 0 -1 4 9 0 0 0 1 1 -1 1 20 0 1 0 5 3 6"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        scratch_put(s, "7/stat", bad[i]);
        p.pid = 77;
        assert_int_equal(procstat_read(s->dir, 7, &p), ERR_INVALID);
        assert_int_equal(p.pid, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_descendants, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_leaf, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_switches_of_descendants, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_switches_of_a_leaf, scratch_set_up, scratch_tear_down),
        cmocka_unit_test(test_fields),
        cmocka_unit_test_setup_teardown(test_marks, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_stat_text, scratch_set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
