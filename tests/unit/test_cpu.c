/* CPU counters: recorded /proc/stat files, broken ones, and this machine. */
#include "agent/telemetry/cpu.h"
#include "common/clock.h"
#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static enum err read_recorded(const char *text, struct cpu_reading *out, struct err_detail *d)
{
    struct scratch s;
    scratch_init(&s);
    scratch_put(&s, "stat", text);
    struct cpu_counters *c = NULL;
    assert_int_equal(cpu_counters_new(s.dir, &c, d), ERR_OK);
    enum err e = cpu_counters_read(c, out, d);
    cpu_counters_free(c);
    scratch_fini(&s);
    return e;
}

static void test_recorded(void **state)
{
    (void)state;
    struct cpu_reading r;
    struct err_detail d;
    /* user nice system idle iowait irq softirq steal guest guest_nice; guest (500) is part of user. */
    assert_int_equal(read_recorded("cpu  1000 20 300 50000 600 7 8 90 500 3\n"
                                   "cpu0 500 10 150 25000 300 3 4 45 250 1\n"
                                   "cpu1 500 10 150 25000 300 4 4 45 250 2\n"
                                   "intr 1 2 3\nctxt 5\n",
                                   &r, &d),
                     ERR_OK);
    assert_int_equal(r.busy_ns, (1000 + 20 + 300 + 7 + 8) * 10 * NS_PER_MS);
    assert_int_equal(r.steal_ns, 90 * 10 * NS_PER_MS);
    assert_int_equal(r.cpus, 2);
}

static void test_broken(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "cpu\n",
                                      "cpu 1 2 3\n",
                                      "cpu0 1 2 3 4 5 6 7 8 9 10\n",
                                      "cpu 1 2 3 4 5 6 7 x\n",
                                      "cpu 1 2 3 4 5 6 7 8x\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cpu_reading r = {.cpus = 77};
        struct err_detail d = {""};
        assert_int_equal(read_recorded(bad[i], &r, &d), ERR_INVALID);
        assert_non_null(strstr(d.text, "proc(5)"));
        assert_int_equal(r.cpus, 77);
    }
}

static void test_missing(void **state)
{
    (void)state;
    struct cpu_counters *c = NULL;
    struct err_detail d = {""};
    assert_int_equal(cpu_counters_new("/nonexistent", &c, &d), ERR_NOT_FOUND);
    assert_null(c);
    assert_non_null(strstr(d.text, "/nonexistent/stat"));
}

static void test_this_machine(void **state)
{
    (void)state;
    struct cpu_counters *c = NULL;
    struct cpu_reading before;
    struct cpu_reading after;
    assert_int_equal(cpu_counters_new("/proc", &c, NULL), ERR_OK);
    assert_int_equal(cpu_counters_read(c, &before, NULL), ERR_OK);
    assert_int_equal(before.cpus, sysconf(_SC_NPROCESSORS_ONLN));
    /* Our own loop must show up in both counters; it runs until it does. */
    do {
        assert_int_equal(cpu_counters_read(c, &after, NULL), ERR_OK);
        assert_true(after.own_ns >= before.own_ns && after.busy_ns >= before.busy_ns);
        assert_true(after.taken_at_ns - before.taken_at_ns < 30 * NS_PER_S);
    } while (after.busy_ns - before.busy_ns < 50 * NS_PER_MS ||
             after.own_ns - before.own_ns < 10 * NS_PER_MS);
    cpu_counters_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
