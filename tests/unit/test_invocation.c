/* The agent's command line: what is taken, what is refused and with which words. */
#include "agent/invocation.h"
#include "common/address.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define PARSE(o, d, ...)                                                                                     \
    parse_words(o, d, (const char *[]){"splitbench-agent", __VA_ARGS__},                                     \
                ARRAY_LEN(((const char *[]){"splitbench-agent", __VA_ARGS__})))

static enum err parse_words(struct invocation *o, struct err_detail *d, const char *const *words,
                            size_t count)
{
    static char texts[32][256]; /* what was read stays in argv */
    char *argv[32] = {NULL};
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%s", words[i]);
        argv[i] = texts[i];
    }
    return invocation_parse((int)count, argv, o, d);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } good[] = {
        {"lab1", "tls+tcp://lab1:7411"},
        {"lab1:80", "tls+tcp://lab1:80"},
        {"10.0.0.1", "tls+tcp://10.0.0.1:7411"},
        {"[fe80::1%eth0]", "tls+tcp://[fe80::1%eth0]:7411"},
        {"[::1]:7000", "tls+tcp://[::1]:7000"},
        {"tls+tcp://a.b-c:65535", "tls+tcp://a.b-c:65535"},
        {"tls+tcp://a", "tls+tcp://a:7411"},
        {"/run/x.sock", "ipc:///run/x.sock"},
        {"ipc:///run/x.sock", "ipc:///run/x.sock"},
    };
    static const char *const bad[] = {"",        ":",      "a:",         "a:0",        "a:65536", "a:1x",
                                      "::1",     "a:1:2",  "[::1",       "[::1]x",     "[]:1",    "a b",
                                      "tcp://a", "ws://a", "ipc://here", "tls+tcp://", "a/b:1"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char *out = NULL;
        struct err_detail d = {""};
        if (address_parse(good[i].in, &out, &d) != ERR_OK)
            fail_msg("%s: %s", good[i].in, d.text);
        assert_string_equal(out, good[i].out);
        free(out);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *out = NULL;
        struct err_detail d = {""};
        if (address_parse(bad[i], &out, &d) != ERR_INVALID)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_null(out);
        assert_string_not_equal(d.text, "");
    }
}

static void test_run_with_everything(void **state)
{
    (void)state;
    struct invocation o;
    struct err_detail d = {""};
    assert_int_equal(PARSE(&o, &d, "run", "--controller", "lab1", "--identity", "/i", "--name", "sut-1",
                           "--label", "a=1", "--label=b=2", "--address", "10.0.0.2", "--state", "/s",
                           "--leash", "-v", "--load-program", "/bin/load"),
                     ERR_OK);
    assert_int_equal(o.command, INVOCATION_RUN);
    assert_string_equal(o.controller, "tls+tcp://lab1:7411");
    assert_string_equal(o.identity_dir, "/i");
    assert_string_equal(o.state_dir, "/s");
    assert_string_equal(o.name, "sut-1");
    assert_string_equal(o.address, "10.0.0.2");
    assert_string_equal(o.load_program, "/bin/load");
    assert_int_equal(o.labels.count, 2);
    assert_string_equal(o.labels.items[1], "b=2");
    assert_true(o.leash);
    assert_true(o.verbose);
    invocation_fini(&o);
}

static void test_defaults(void **state)
{
    (void)state;
    struct invocation o;
    struct err_detail d = {""};
    setenv("HOME", "/home/somebody", 1);
    setenv("XDG_STATE_HOME", "/xdg/state", 1);
    unsetenv("XDG_CONFIG_HOME");
    assert_int_equal(PARSE(&o, &d, "run"), ERR_OK);
    bool root = geteuid() == 0;
    assert_string_equal(o.identity_dir,
                        root ? "/etc/splitbench/agent" : "/home/somebody/.config/splitbench/agent");
    assert_string_equal(o.state_dir, root ? "/var/lib/splitbench/agent" : "/xdg/state/splitbench/agent");
    assert_null(o.controller);
    assert_null(o.name);
    assert_non_null(strstr(o.load_program, "/splitbench-load"));
    assert_false(o.leash);
    invocation_fini(&o);
    assert_int_equal(PARSE(&o, &d, "run", "--state", "here"), ERR_OK);
    assert_int_equal(o.state_dir[0], '/');
    assert_non_null(strstr(o.state_dir, "/here"));
    invocation_fini(&o);
}

static void test_enroll(void **state)
{
    (void)state;
    struct invocation o;
    struct err_detail d = {""};
    assert_int_equal(PARSE(&o, &d, "enroll", "lab1:7000", "sb1.a.b", "--name", "x", "--identity", "/i"),
                     ERR_OK);
    assert_int_equal(o.command, INVOCATION_ENROLL);
    assert_string_equal(o.controller, "tls+tcp://lab1:7000");
    assert_string_equal(o.token, "sb1.a.b");
    assert_null(o.state_dir);
    invocation_fini(&o);
}

static void expect_refused(const char *part, const char *a, const char *b, const char *c)
{
    const char *words[4] = {"splitbench-agent", a, b, c};
    size_t count = a == NULL ? 1 : b == NULL ? 2 : c == NULL ? 3 : 4;
    struct invocation o;
    struct err_detail d = {""};
    assert_int_equal(parse_words(&o, &d, words, count), ERR_INVALID);
    if (strstr(d.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", d.text, part);
    invocation_fini(&o);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("run or enroll", NULL, NULL, NULL);
    expect_refused("did you mean 'enroll'?", "enrol", NULL, NULL);
    expect_refused("unknown command 'x9y'", "x9y", NULL, NULL);
    expect_refused("did you mean --controller?", "run", "--controler", "x");
    expect_refused("needs a value", "run", "--name", NULL);
    expect_refused("run: 'now' is too much", "run", "now", NULL);
    expect_refused("letters, digits", "run", "--name", "a/b");
    expect_refused("1 to 128", "run", "--name", "");
    expect_refused("1 to 128", "run", "--name", ".hidden");
    expect_refused("begin with a letter or digit", "run", "--name", "-x");
    expect_refused("begin with a letter or digit", "run", "--name", "_x");
    expect_refused("--address", "run", "--address", "a b");
    expect_refused("brackets", "run", "--controller", "::1");
    expect_refused("ADDRESS and TOKEN", "enroll", "lab1", NULL);
    expect_refused("--state", "run", "--state", "");
}

static void test_name_at_its_limit(void **state)
{
    (void)state;
    char name[130];
    memset(name, 'n', sizeof name);
    name[129] = '\0';
    expect_refused("1 to 128", "run", "--name", name);
    name[128] = '\0';
    struct invocation o;
    struct err_detail d = {""};
    assert_int_equal(PARSE(&o, &d, "run", "--name", name), ERR_OK);
    invocation_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_run_with_everything),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_enroll),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_name_at_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
