/* What changes an experiment before it is checked: --set and variables. */
#include "tests/support/experiment_text.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_sets(void **state)
{
    (void)state;
    static const char *const sets[] = {"design.rounds=4",
                                       "targets[0].port=9000",
                                       "workloads[name=w].duration=2s",
                                       "targets[name=a].env[\"X_Y\"]=5",
                                       "workloads[0].connections=[1,2]",
                                       "name=7",
                                       "targets[0].labels={\"a\": \"b\"}",
                                       NULL};
    struct experiment *e = experiment_text_good(experiment_text_small, sets);
    assert_int_equal(e->design.rounds, 4);
    assert_int_equal(e->targets[0].port, 9000);
    assert_true(e->workloads[0].duration_ns == 2 * NS_PER_S);
    assert_string_equal(e->targets[0].env.items[0].key, "X_Y");
    assert_string_equal(e->targets[0].env.items[0].value, "5");
    assert_int_equal(e->workloads[0].connections[1], 2);
    assert_string_equal(e->name, "7");
    assert_string_equal(e->targets[0].labels[0].key, "a");
    experiment_free(e);
}

static void test_bad_sets(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        const char *wanted;
    } cases[] = {
        {"design.rounds=0", "0:0: --set design.rounds=0: is 0, must be a whole number from 1 to 1000"},
        {"design.roundz=1", "0:0: --set design.roundz=1: unknown key; allowed: rounds, order"},
        {"desing.rounds=1", "0:0: --set desing.rounds=1: desing: unknown key; allowed: $schema"},
        {"targets[1].port=1", "0:0: --set targets[1].port=1: targets[1] does not exist: targets has the "
                              "elements 0 to 0 (a)"},
        {"targets[name=b].port=1",
         "0:0: --set targets[name=b].port=1: targets has no element with name \"b\"; there are: a"},
        {"targets.port=1", "0:0: --set targets.port=1: targets is a list: name an element"},
        {"name.x=1", "0:0: --set name.x=1: name is a string: it has no member \"x\""},
        {"name[0]=1", "0:0: --set name[0]=1: name is a string, not a list"},
        {"targets[0=1", "0:0: --set targets[0=1: write PATH=VALUE"},
        {"targets[x]=1", "0:0: --set targets[x]=1: 'targets[x]' is no path; write one like"},
        {"a..b=1", "0:0: --set a..b=1: 'a..b' is no path"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1", "0:0: --set a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1: '"},
        {"design={\"rounds\":2,\"rounds\":3}", "0:0: --set design={\"rounds\":2,\"rounds\":3}: is \"{"},
        {"design={\"rounds\":\"2\"}",
         "0:0: --set design={\"rounds\":\"2\"}: design.rounds: is \"2\", must be"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char copy[128];
        struct experiment_set set;
        struct err_detail d;
        snprintf(copy, sizeof copy, "%s", cases[i].set);
        if (experiment_split_set(copy, &set, &d) != ERR_OK) {
            assert_non_null(strstr(cases[i].wanted, "write PATH=VALUE"));
            assert_non_null(strstr(d.text, "write PATH=VALUE"));
            continue;
        }
        const char *const sets[] = {cases[i].set, NULL};
        experiment_text_bad(experiment_text_small, sets, cases[i].wanted);
    }
}

static void test_variables(void **state)
{
    (void)state;
    static const char text[] =
        "{ \"name\": \"d\", \"vars\": { \"a\": 1, \"b\": \"x${a}y\", \"yes\": true, \"s\": \"80\" },\n"
        "  \"targets\": [ { \"name\": \"${b}\", \"start\": [\"$a\", \"$$\", \"$${a}\", \"$$${a}\", "
        "\"${a}${b}\",\n"
        "    \"${yes}\"], \"port\": \"${a}\" } ],\n"
        "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": \"${a}\",\n"
        "    \"duration\": \"${a}s\" } ] }";
    struct experiment *e = experiment_text_good(text, NULL);
    const struct msg_strings *s = &e->targets[0].start;
    static const char *const wanted[] = {"$a", "$$", "${a}", "$${a}", "1x1y", "true"};
    assert_string_equal(e->targets[0].name, "x1y");
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_string_equal(s->items[i], wanted[i]);
    struct experiment *again = NULL;
    struct experiment_problems p;
    assert_int_equal(experiment_parse(e->resolved_json, strlen(e->resolved_json), NULL, &again, &p), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_string_equal(again->targets[0].start.items[i], wanted[i]);
    experiment_free(again);
    experiment_free(e);
    static const char *const sets[] = {"vars.a=7", NULL};
    e = experiment_text_good(text, sets);
    assert_int_equal(e->targets[0].port, 7);
    assert_string_equal(e->targets[0].name, "x7y");
    experiment_free(e);
    experiment_text_bad(
        "{ \"vars\": { \"port\": 1, \"b\": \"${later}\", \"later\": [], \"a-b\": 1 },\n\"name\": "
        "\"${prot}\",\n"
        "\"targets\": \"${port\" }",
        NULL,
        "1:1: workloads: is missing: a list of the loads to put on each target\n"
        "1:29: vars.b: unknown variable ${later}; vars has: port\n"
        "1:50: vars.later: is a list, must be a string, a number, true or false\n"
        "1:54: vars.a-b: variables are named with letters, digits and _, not starting with a digit, at "
        "most 60\n"
        "2:9: name: unknown variable ${prot}; vars has: port, b; did you mean ${port}?\n"
        "3:12: targets: '${' without '}'; write $${ for the characters themselves\n");
}

static void test_server_address(void **state)
{
    (void)state;
    static const char text[] =
        "{ \"name\": \"d\", \"targets\": [ { \"name\": \"a\", \"start\": [\"s\", \"${server.address}:1\"],\n"
        "  \"env\": { \"HOST\": \"${server.address}\" }, \"ready\": { \"http\": \"/\", \"port\": 81 } } ],\n"
        "  \"workloads\": [ { \"name\": \"w\", \"connections\": 1, \"duration\": \"1s\", \"request\":\n"
        "    { \"path\": \"/\", \"headers\": { \"host\": \"<${server.address}>\" } } } ] }";
    struct experiment *e = experiment_text_good(text, NULL);
    struct experiment *again = NULL;
    struct experiment_problems p;
    assert_int_equal(e->targets[0].port, 81);
    assert_int_equal(experiment_parse(e->resolved_json, strlen(e->resolved_json), NULL, &again, &p), ERR_OK);
    assert_string_equal(again->resolved_json, e->resolved_json);
    struct msg_strings start;
    experiment_fill_strings(&again->targets[0].start, "10.0.0.2", &start);
    assert_int_equal(start.count, 2);
    assert_string_equal(start.items[1], "10.0.0.2:1");
    mem_free_strings(&start.items, &start.count);
    char *host = experiment_fill(again->workloads[0].request.headers.items[0].value, "::1");
    assert_string_equal(host, "<::1>");
    free(host);
    experiment_free(again);
    experiment_free(e);
    static const char *const wrong[] = {"workloads[0].request.path=/${server.address}",
                                        "targets[0].labels={\"a\":\"${server.address}\"}",
                                        "targets[0].start=[\"$${server.address}\"]", NULL};
    experiment_text_bad(
        text, wrong,
        "0:0: --set targets[0].labels={\"a\":\"${server.address}\"}: targets[0].labels.a: "
        "${server.address} can stand in build, start and env of a target and in headers of a request only\n"
        "0:0: --set targets[0].start=[\"$${server.address}\"]: targets[0].start[0]: ${server.address} "
        "cannot be had as plain characters\n"
        "0:0: --set workloads[0].request.path=/${server.address}: ${server.address} can stand in build");
}

/* Pieces that make the built-in variable together would be one in the resolved text. */
static void test_server_address_in_pieces(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"vars={\"a\":\"server.address}\"}", "targets[0].env={\"X\":\"$${${a}\"}"},
        {"vars={\"a\":\"$\"}", "targets[0].env={\"X\":\"${a}{server.address}\"}"},
        {"vars={\"a\":\"$\"}", "targets[0].env={\"X\":\"${a}${server.address}\"}"},
        {"vars={\"a\":\"$\"}", "targets[0].env={\"X\":\"${server.address}${a}{server.address}\"}"},
        {"vars={\"a\":\"$\"}", "workloads[0].request.body=${a}{server.address}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const sets[] = {cases[i][0], cases[i][1], NULL};
        struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, sets);
        assert_int_equal(r.err, ERR_INVALID);
        assert_non_null(strstr(r.problems.items[0].text, "cannot be had as plain characters"));
        experiment_text_fini(&r);
    }
    static const char *const twice[] = {"targets[0].env={\"X\":\"${server.address},${server.address}$${\"}",
                                        NULL};
    experiment_free(experiment_text_good(experiment_text_small, twice));
}

/* Ten levels of doubling from 8 KiB: far over the budget, refused before it is built. */
static void test_variables_cannot_grow_without_end(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1u << 20);
    assert_int_equal(buf_append_text(&b, "{ \"vars\": { \"v0\": \""), ERR_OK);
    for (int i = 0; i < 8192; i++)
        assert_int_equal(buf_append_text(&b, "x"), ERR_OK);
    for (int i = 1; i <= 10; i++)
        assert_int_equal(buf_printf(&b, "\",\n\"v%d\": \"${v%d}${v%d}", i, i - 1, i - 1), ERR_OK);
    assert_int_equal(buf_append_text(&b, "\" } }"), ERR_OK);
    struct experiment_text r = experiment_text_read(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_INVALID);
    bool found = false;
    for (size_t i = 0; i < r.problems.count; i++)
        found = found || strstr(r.problems.items[i].text, "have over 4194304 bytes when these are filled in");
    assert_true(found);
    experiment_text_fini(&r);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_bad_sets),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_server_address),
        cmocka_unit_test(test_server_address_in_pieces),
        cmocka_unit_test(test_variables_cannot_grow_without_end),
    };
    return cmocka_run_group_tests(tests, experiment_text_begin, experiment_text_end);
}
