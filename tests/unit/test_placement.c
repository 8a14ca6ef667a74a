#include "controller/run/placement.h"

#include "common/mem.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct msg_host host(const char *boot_id, const char *cpus)
{
    return (struct msg_host){.hostname = (char *)(uintptr_t) "box",
                             .boot_id = (char *)(uintptr_t)boot_id,
                             .cpu_list = (char *)(uintptr_t)cpus};
}

static enum err place(struct msg_host server, struct msg_host load, const char *target_cpus,
                      const struct placement_cores *cores, struct placement *out, struct err_detail *d)
{
    const struct msg_host *loads[] = {&load};
    return placement_make(&server, loads, 1, target_cpus, cores, out, d);
}

static void test_two_machines_are_not_pinned(void **state)
{
    struct placement p;
    (void)state;
    assert_int_equal(place(host("a", "0-7"), host("b", "0-3"), NULL, NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_HOSTS);
    assert_string_equal(p.server.cpus, "");
    assert_string_equal(p.load[0].cpus, "");
    assert_int_equal(p.server.cpu_count, 8);
    assert_int_equal(p.load[0].cpu_count, 4);
}

static void test_one_machine_is_halved(void **state)
{
    struct placement p;
    (void)state;
    assert_int_equal(place(host("a", "0-7"), host("a", "0-7"), NULL, NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_CPUS);
    assert_string_equal(p.server.cpus, "0-3");
    assert_string_equal(p.load[0].cpus, "4-7");
    assert_int_equal(place(host("a", "0-1"), host("a", "0-1"), NULL, NULL, &p, NULL), ERR_OK);
    assert_string_equal(p.server.cpus, "0");
    assert_string_equal(p.load[0].cpus, "1");
    assert_int_equal(p.load[0].cpu_count, 1);
}

static void test_one_cpu_is_shared(void **state)
{
    struct placement p;
    (void)state;
    assert_int_equal(place(host("a", "3"), host("a", "3"), NULL, NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SHARED);
    assert_string_equal(p.server.cpus, "3");
    assert_string_equal(p.load[0].cpus, "3");
}

static void test_siblings_stay_together(void **state)
{
    struct placement p;
    struct placement_cores cores;
    (void)state;
    placement_plain_cores(&cores);
    for (uint16_t i = 0; i < 4; i++)
        cores.core_of[4 + i] = i; /* 0,4 1,5 2,6 3,7 */
    assert_int_equal(place(host("a", "0-7"), host("a", "0-7"), NULL, &cores, &p, NULL), ERR_OK);
    assert_string_equal(p.server.cpus, "0-1,4-5");
    assert_string_equal(p.load[0].cpus, "2-3,6-7");
    /* A single core with two threads is still better split than shared. */
    assert_int_equal(place(host("a", "0,4"), host("a", "0,4"), NULL, &cores, &p, NULL), ERR_OK);
    assert_string_equal(p.server.cpus, "0");
    assert_string_equal(p.load[0].cpus, "4");
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_CPUS);
}

static void test_agents_with_cpus_of_their_own_keep_them(void **state)
{
    struct placement p;
    (void)state;
    assert_int_equal(place(host("a", "0-5"), host("a", "6-7"), NULL, NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_CPUS);
    assert_string_equal(p.server.cpus, "0-5");
    assert_string_equal(p.load[0].cpus, "6-7");
}

static void test_target_chooses(void **state)
{
    struct placement p;
    struct err_detail d;
    (void)state;
    assert_int_equal(place(host("a", "0-7"), host("a", "0-7"), "0", NULL, &p, NULL), ERR_OK);
    assert_string_equal(p.server.cpus, "0");
    assert_string_equal(p.load[0].cpus, "1-7");
    assert_int_equal(place(host("a", "0-7"), host("a", "0-7"), "0-7", NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SHARED);
    assert_int_equal(place(host("a", "0-7"), host("b", "0-7"), "2", NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_HOSTS);
    assert_string_equal(p.server.cpus, "2");
    assert_string_equal(p.load[0].cpus, "");
    assert_int_equal(place(host("a", "0-1"), host("b", "0-1"), "2", NULL, &p, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "0-1"));
}

static void test_bad_lists_are_refused(void **state)
{
    struct placement p;
    (void)state;
    assert_int_equal(place(host("a", ""), host("b", "0"), NULL, NULL, &p, NULL), ERR_INVALID);
    assert_int_equal(place(host("a", "0"), host("b", "x"), NULL, NULL, &p, NULL), ERR_INVALID);
    /* No boot id is not the same boot id. */
    assert_int_equal(place(host("", "0-1"), host("", "0-1"), NULL, NULL, &p, NULL), ERR_OK);
    assert_int_equal(p.kind, STORE_PLACEMENT_SPLIT_HOSTS);
}

static void test_threads(void **state)
{
    (void)state;
    assert_int_equal(placement_threads(0, 100, 4), 4);
    assert_int_equal(placement_threads(0, 2, 4), 2);
    assert_int_equal(placement_threads(3, 100, 1), 3);
    assert_int_equal(placement_threads(0, 100000, 512), PLACEMENT_THREADS_MAX);
    assert_int_equal(placement_threads(0, 0, 0), 1);
}

static void test_cores_are_read(void **state)
{
    struct scratch *s = *state;
    struct placement_cores cores;
    scratch_put(s, "devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
    scratch_put(s, "devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
    scratch_put(s, "devices/system/cpu/cpu1/topology/thread_siblings_list", "nonsense\n");
    placement_read_cores(s->dir, &cores);
    assert_int_equal(cores.core_of[2], 0);
    assert_int_equal(cores.core_of[1], 1);
    assert_int_equal(cores.core_of[3], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_machines_are_not_pinned),
        cmocka_unit_test(test_one_machine_is_halved),
        cmocka_unit_test(test_one_cpu_is_shared),
        cmocka_unit_test(test_siblings_stay_together),
        cmocka_unit_test(test_agents_with_cpus_of_their_own_keep_them),
        cmocka_unit_test(test_target_chooses),
        cmocka_unit_test(test_bad_lists_are_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test_setup_teardown(test_cores_are_read, scratch_set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
