/* Facts about a machine: from recorded trees, from this one, and with everything missing. */
#include "agent/host.h"
#include "common/mem.h"
#include "proto/libraries.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void put(const struct scratch *t, const char *name, const char *text)
{
    char *path = mem_printf("%s%s", t->dir, name);
    for (char *p = path + strlen(t->dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void put_kernel(const struct scratch *t)
{
    put(t, "/proc/sys/kernel/hostname", "lab-07\n");
    put(t, "/proc/sys/kernel/osrelease", "6.1.0-25-amd64\n");
    put(t, "/proc/sys/kernel/random/boot_id", "5a1f2b5e-9d1c-4c4e-8f0a-0123456789ab\n");
}

static void test_x86_machine(void **state)
{
    struct scratch *t = *state;
    put_kernel(t);
    put(t, "/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
    put(t, "/proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 183\n"
        "model name\t: 13th Gen Intel(R) Core(TM) i7-13700K\nstepping\t: 1\n");
    put(t, "/proc/meminfo", "MemTotal:       32657788 kB\nMemFree:        1 kB\n");
    struct msg_host h;
    assert_int_equal(host_read(t->dir, &h, NULL), ERR_OK);
    assert_string_equal(h.hostname, "lab-07");
    assert_string_equal(h.kernel, "6.1.0-25-amd64");
    assert_string_equal(h.boot_id, "5a1f2b5e-9d1c-4c4e-8f0a-0123456789ab");
    assert_string_equal(h.os, "Debian GNU/Linux 12 (bookworm)");
    assert_string_equal(h.cpu_model, "13th Gen Intel(R) Core(TM) i7-13700K");
    assert_true(h.memory_bytes == UINT64_C(32657788) * 1024);
    assert_string_equal(h.address, "");
    msg_host_fini(&h);
}

static void test_arm_board_and_arm_server(void **state)
{
    struct scratch *t = *state;
    put_kernel(t);
    put(t, "/proc/cpuinfo",
        "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: "
        "0xd0c\n");
    put(t, "/usr/lib/os-release", "PRETTY_NAME='Plain'\n");
    struct msg_host h;
    assert_int_equal(host_read(t->dir, &h, NULL), ERR_OK);
    assert_string_equal(h.cpu_model, "ARM implementer 0x41 part 0xd0c");
    assert_string_equal(h.os, "Plain");
    assert_true(h.memory_bytes == 0);
    msg_host_fini(&h);

    put(t, "/sys/firmware/devicetree/base/model", "Raspberry Pi 5 Model B Rev 1.0");
    assert_int_equal(host_read(t->dir, &h, NULL), ERR_OK);
    assert_string_equal(h.cpu_model, "Raspberry Pi 5 Model B Rev 1.0");
    msg_host_fini(&h);
}

static void test_missing_facts_are_empty_but_boot_id(void **state)
{
    struct scratch *t = *state;
    struct msg_host h;
    struct err_detail d = {""};
    assert_int_equal(host_read(t->dir, &h, &d), ERR_IO);
    assert_non_null(strstr(d.text, "boot_id"));
    assert_string_equal(h.hostname, "");
    assert_string_equal(h.cpu_model, "");
    assert_string_equal(h.os, "");
    msg_host_fini(&h);
    put(t, "/proc/sys/kernel/random/boot_id", "x\n");
    put(t, "/proc/meminfo", "MemTotal: lots\n");
    assert_int_equal(host_read(t->dir, &h, &d), ERR_OK);
    assert_true(h.memory_bytes == 0);
    msg_host_fini(&h);
}

static void test_long_and_odd_names_are_capped(void **state)
{
    struct scratch *t = *state;
    put_kernel(t);
    char name[LIMIT_NAME_BYTES + 3];
    memset(name, 'x', sizeof name);
    name[3] = '\x1b';
    name[sizeof name - 1] = '\0';
    put(t, "/proc/sys/kernel/hostname", name);
    struct msg_host h;
    assert_int_equal(host_read(t->dir, &h, NULL), ERR_OK);
    assert_int_equal(strlen(h.hostname), LIMIT_NAME_BYTES);
    assert_int_equal(h.hostname[3], ' ');
    msg_host_fini(&h);
}

static void test_this_machine(void **state)
{
    (void)state;
    struct msg_host h;
    assert_int_equal(host_read("", &h, NULL), ERR_OK);
    assert_string_not_equal(h.hostname, "");
    assert_string_not_equal(h.kernel, "");
    assert_true(h.memory_bytes > 0);
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(h.cpus, CPU_COUNT(&set));
    assert_string_not_equal(h.cpu_list, "");
    struct library own[PROTO_LIBRARIES_MAX];
    char *libraries = libraries_text(own, proto_libraries(own));
    assert_string_equal(h.libraries, libraries);
    free(libraries);
    msg_host_fini(&h);
}

static void test_labels(void **state)
{
    (void)state;
    struct msg_host h = {0};
    struct err_detail d;
    assert_int_equal(host_add_label(&h, "hardware=i7-13700k", &d), ERR_OK);
    assert_int_equal(host_add_label(&h, "hard=x", &d), ERR_OK);
    assert_int_equal(host_add_label(&h, "hardware=other", &d), ERR_EXISTS);
    const char *const bad[] = {"", "=x", "key", "key=", "k y=1", "key=a\nb", "k\xc3\xa4=1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(host_add_label(&h, bad[i], &d), ERR_INVALID);
    char label[LIMIT_NAME_BYTES + 2];
    memset(label, 'v', sizeof label);
    memcpy(label, "k=", 2);
    label[LIMIT_NAME_BYTES + 1] = '\0';
    assert_int_equal(host_add_label(&h, label, &d), ERR_TOO_BIG);
    label[LIMIT_NAME_BYTES] = '\0';
    assert_int_equal(host_add_label(&h, label, &d), ERR_OK);
    while (h.labels.count < MSG_LABELS_MAX) {
        char *more = mem_printf("n%zu=1", h.labels.count);
        assert_int_equal(host_add_label(&h, more, &d), ERR_OK);
        free(more);
    }
    assert_int_equal(host_add_label(&h, "one=more", &d), ERR_TOO_BIG);
    msg_host_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_x86_machine, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_arm_board_and_arm_server, scratch_set_up, scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_missing_facts_are_empty_but_boot_id, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test_setup_teardown(test_long_and_odd_names_are_capped, scratch_set_up,
                                        scratch_tear_down),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
