#include "controller/run/run_cpu.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

/* A second long; the machine was busy for `busy`, the job's tree (number 1) and the agent took their part. */
struct pair {
    struct msg_sampled before, after;
};

static struct pair second(uint64_t busy, uint64_t tree, uint64_t own)
{
    struct pair p = {.before = {.at_ns = 5 * S, .busy_ns = 100 * S, .own_ns = 7 * S, .proc_count = 1}};
    p.before.procs[0] = (struct msg_proc_sample){.proc = 1, .alive = true, .cpu_ns = 3 * S};
    p.after = p.before;
    p.after.at_ns += S;
    p.after.busy_ns += busy;
    p.after.own_ns += own;
    p.after.procs[0].cpu_ns += tree;
    return p;
}

static struct run_cpu_host as_host(const struct pair *p, const char *boot_id)
{
    return (struct run_cpu_host){.boot_id = boot_id, .before = &p->before, .after = &p->after};
}

static void test_foreign_is_what_is_left(void **state)
{
    struct pair p = second(2 * S, S, S / 4);
    struct run_cpu_host h = as_host(&p, "a");
    (void)state;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) == 0.75);
    assert_true(run_cpu_foreign(&h, 1, 0, S / 4) == 0.5);
    assert_true(run_cpu_own(&h, 1) == 0.25);
}

static void test_one_machine_has_both_roles(void **state)
{
    struct pair server = second(2 * S, S, 0), load = second(2 * S, S / 2, 0);
    struct run_cpu_host hosts[] = {as_host(&server, "a"), as_host(&load, "a")};
    (void)state;
    assert_true(run_cpu_foreign(hosts, 2, 0, 0) == 0.5);
    assert_true(run_cpu_foreign(hosts, 2, 1, 0) == 0.5);
    hosts[1].boot_id = "b";
    assert_true(run_cpu_foreign(hosts, 2, 0, 0) == 1.0);
    hosts[0].boot_id = hosts[1].boot_id = ""; /* not known: taken as two machines */
    assert_true(run_cpu_foreign(hosts, 2, 0, 0) == 1.0);
}

static void test_never_below_zero(void **state)
{
    struct pair p = second(S, 2 * S, 0); /* counters tick in 10 ms: the parts may pass the whole */
    struct run_cpu_host h = as_host(&p, "a");
    (void)state;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) == 0);
}

static void test_nonsense_is_unknown(void **state)
{
    uint64_t ns = 0;
    struct pair p = second(S, S, 0);
    struct run_cpu_host h = as_host(&p, "a");
    (void)state;
    p.after.busy_ns = 0;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) < 0);
    p = second(S, S, 0);
    p.after.at_ns = p.before.at_ns;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) < 0);
    p = second(S, S, 0);
    p.after.procs[0].cpu_ns = 0;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) < 0);
    assert_false(run_cpu_of_proc(&h, 1, &ns));
    p = second(UINT64_MAX / 2, S, 0);
    assert_true(run_cpu_foreign(&h, 1, 0, 0) < 0);
    h.before = NULL;
    assert_true(run_cpu_foreign(&h, 1, 0, 0) < 0);
    assert_true(run_cpu_own(&h, 1) < 0);
    assert_false(run_cpu_interval(&h, &ns));
}

static void test_proc(void **state)
{
    uint64_t ns = 0;
    struct pair p = second(S, S / 2, 0);
    struct run_cpu_host h = as_host(&p, "a");
    (void)state;
    assert_true(run_cpu_of_proc(&h, 1, &ns));
    assert_int_equal(ns, S / 2);
    assert_false(run_cpu_of_proc(&h, 2, &ns));
}

static void test_counters(void **state)
{
    struct pair p = second(S, S / 2, 0);
    struct run_cpu_host h = as_host(&p, "a");
    struct figure out[FIGURE_TREE_COUNT] = {{0}};
    (void)state;
    run_cpu_counters(&h, 1, out); /* an agent that does not send them */
    assert_false(out[0].known);
    for (int i = 0; i < FIGURE_TREE_COUNT; i++) {
        p.before.procs[0].counters[i] = figure_known(1000);
        p.after.procs[0].counters[i] = figure_known(1007 + (uint64_t)i);
    }
    run_cpu_counters(&h, 2, out); /* a tree that was not asked for */
    assert_false(out[0].known);
    run_cpu_counters(&h, 1, out);
    for (int i = 0; i < FIGURE_TREE_COUNT; i++)
        assert_true(out[i].known && out[i].value == 7 + (uint64_t)i);
    p.after.procs[0].counters[0] = figure_known(999);
    run_cpu_counters(&h, 1, out);
    assert_false(out[0].known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign_is_what_is_left),
        cmocka_unit_test(test_one_machine_has_both_roles),
        cmocka_unit_test(test_never_below_zero),
        cmocka_unit_test(test_nonsense_is_unknown),
        cmocka_unit_test(test_proc),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
