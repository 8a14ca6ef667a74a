/* The experiment file: what it becomes, what is refused and where, the resolved text. */
#include "tests/support/experiment_text.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_defaults(void **state)
{
    (void)state;
    struct experiment *e = experiment_text_good(experiment_text_small, NULL);
    assert_string_equal(e->name, "demo");
    assert_string_equal(experiment_role(e, "server")->name, "server");
    assert_int_equal(experiment_role(e, "server")->count, 1);
    assert_int_equal(experiment_role(e, "load")->count, 1);
    assert_null(experiment_role(e, "db"));
    assert_null(e->targets[0].dir);
    assert_int_equal(e->targets[0].ready.kind, MSG_READY_TCP);
    assert_int_equal(e->targets[0].ready.port, 8080);
    assert_true(e->targets[0].ready.timeout_ns == 10 * NS_PER_S);
    assert_true(e->targets[0].stop_grace_ns == 5 * NS_PER_S);
    assert_null(e->targets[0].cpus);
    assert_string_equal(e->workloads[0].request.method, "GET");
    assert_int_equal(e->workloads[0].connection_count, 1);
    assert_int_equal(e->workloads[0].threads, 0);
    assert_true(e->workloads[0].timeout_ns == 10 * NS_PER_S);
    assert_int_equal(e->design.rounds, 1);
    assert_int_equal(e->design.order, EXPERIMENT_ORDER_FIXED);
    assert_int_equal(e->design.fresh, EXPERIMENT_FRESH_ROUND);
    assert_int_equal(e->gates.errors_max, 0);
    assert_int_equal(e->gates.retries, 2);
    assert_false(e->gates.has_foreign_cpu);
    assert_string_equal(e->base_dir, experiment_text_dir);
    experiment_free(e);
}

static const char full[] =
    "// everything there is\n"
    "{ \"$schema\": \"./experiment.schema.json\", \"name\": \"all/of-it\",\n"
    "  \"vars\": { \"port\": 3000, \"where\": \"/id/${port}\", \"pause\": \"2s\" },\n"
    "  \"roles\": { \"server\": { \"labels\": { \"pool\": \"sut\" } }, \"load\": { \"count\": 2 } },\n"
    "  \"files\": [\"dist/**\", \"*.js\"],\n"
    "  \"targets\": [ { \"name\": \"bun/elysia\", \"labels\": { \"runtime\": \"bun\" }, \"dir\": \"/srv\",\n"
    "    \"build\": [[\"npm\", \"ci\"], [\"npm\", \"run\", \"b$${x}\"]], \"start\": [\"bun\", \"${port}\"],\n"
    "    \"env\": { \"PORT\": \"${port}\", \"E\": \"\" }, \"port\": \"${port}\",\n"
    "    \"ready\": { \"http\": \"/up\", \"timeout\": \"1.5s\" }, \"stop_grace\": \"0\", \"cpus\": \"0-1\" "
    "},\n"
    "   { \"name\": \"tcp\", \"start\": [\"x\"], \"port\": 1, \"ready\": { \"tcp\": 2 } },\n"
    "   { \"name\": \"tcp2\", \"start\": [\"x\"], \"ready\": { \"tcp\": 3 } } ],\n"
    "  \"checks\": [ { \"name\": \"c\", \"request\": { \"path\": \"/\" }, \"expect\": { \"status\": 404,\n"
    "    \"body\": { \"contains\": \"${port}\" }, \"headers\": { \"Content-Type\": \"text/plain\" }, "
    "\"body_bytes\": 0 } },\n"
    "   { \"name\": \"d\", \"request\": { \"path\": \"/\" } } ],\n"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"method\": \"POST\", \"path\": \"${where}\",\n"
    "    \"headers\": { \"X-Q\": \"a\\\"b\" }, \"body_file\": \"body.bin\" }, \"connections\": [10, 500],\n"
    "    \"threads\": 2, \"warmup\": \"${pause}\", \"duration\": \"250ms\", \"timeout\": \"3s\",\n"
    "    \"expect\": { \"body_bytes\": 14148221 } } ],\n"
    "  \"design\": { \"rounds\": 6, \"order\": \"latin-square\", \"cooldown\": \"1m\", \"gap\": \"2s\",\n"
    "    \"fresh_process\": \"window\" },\n"
    "  \"gates\": { \"errors\": 3, \"foreign_cpu\": 0.1, \"generator_cpu\": 0.9, \"retries\": 0 } }\n";

static void test_everything(void **state)
{
    (void)state;
    experiment_text_write("body.bin", "\x00\xff$x", 4);
    struct experiment *e = experiment_text_good(full, NULL);
    assert_string_equal(experiment_role(e, "server")->labels[0].value, "sut");
    assert_int_equal(experiment_role(e, "load")->count, 2);
    assert_int_equal(e->files.count, 2);
    const struct experiment_target *t = &e->targets[0];
    assert_string_equal(t->build[1].items[2], "b${x}");
    assert_string_equal(t->start.items[1], "3000");
    assert_string_equal(t->env.items[0].key, "PORT");
    assert_string_equal(t->env.items[0].value, "3000");
    assert_string_equal(t->env.items[1].value, "");
    assert_int_equal(t->port, 3000);
    assert_int_equal(t->ready.kind, MSG_READY_HTTP);
    assert_string_equal(t->ready.path, "/up");
    assert_true(t->ready.timeout_ns == 1500 * NS_PER_MS);
    assert_true(t->stop_grace_ns == 0);
    assert_string_equal(t->cpus, "0-1");
    assert_int_equal(e->targets[1].ready.port, 2);
    assert_int_equal(e->targets[1].port, 1);
    assert_int_equal(e->targets[2].port, 3);
    const struct msg_check *c = &e->checks[0];
    assert_int_equal(c->status, 404);
    assert_int_equal(c->body.kind, MSG_MATCH_CONTAINS);
    assert_int_equal(c->body.text.len, 4);
    assert_memory_equal(c->body.text.data, "3000", 4);
    assert_string_equal(c->headers[0].name, "content-type");
    assert_int_equal(c->headers[0].kind, MSG_MATCH_EXACT);
    assert_true(c->has_body_bytes);
    assert_int_equal(e->checks[1].status, 200);
    assert_int_equal(e->checks[1].body.kind, MSG_MATCH_NONE);
    const struct experiment_workload *w = &e->workloads[0];
    assert_string_equal(w->request.path, "/id/3000");
    assert_string_equal(w->request.headers.items[0].value, "a\"b");
    assert_int_equal(w->request.body.len, 4);
    assert_memory_equal(w->request.body.data, "\x00\xff$x", 4);
    assert_int_equal(w->connections[1], 500);
    assert_true(w->warmup_ns == 2 * NS_PER_S && w->duration_ns == 250 * NS_PER_MS);
    assert_true(w->has_body_bytes && w->body_bytes == 14148221);
    assert_int_equal(e->design.rounds, 6);
    assert_int_equal(e->design.order, EXPERIMENT_ORDER_LATIN_SQUARE);
    assert_int_equal(e->design.fresh, EXPERIMENT_FRESH_WINDOW);
    assert_true(e->design.cooldown_ns == 60 * NS_PER_S && e->design.gap_ns == 2 * NS_PER_S);
    assert_true(e->gates.has_foreign_cpu && e->gates.foreign_cpu_max == 0.1);
    assert_int_equal(e->gates.retries, 0);
    experiment_free(e);
}

/* What was resolved reads back to the same text and hash, wherever it came from. */
static void test_resolved_is_a_fixed_point(void **state)
{
    (void)state;
    experiment_text_write("body.bin", "\x00\xff$x", 4);
    struct experiment *e = experiment_text_good(full, NULL);
    struct experiment *again = NULL;
    struct experiment_problems p;
    struct experiment_options o = {.base_dir = "/elsewhere"};
    assert_int_equal(experiment_parse(e->resolved_json, strlen(e->resolved_json), &o, &again, &p), ERR_OK);
    assert_string_equal(again->resolved_json, e->resolved_json);
    assert_memory_equal(again->hash, e->hash, MSG_HASH_BYTES);
    assert_string_equal(again->base_dir, "/elsewhere");
    assert_string_equal(again->targets[0].build[1].items[2], "b${x}");
    assert_int_equal(again->workloads[0].request.body.len, 4);
    experiment_free(again);
    /* A comment, another order of keys: the same experiment, the same hash. */
    static const char moved[] = "{ \"workloads\": [ { \"connections\": [10], \"duration\": \"1000ms\", /**/\n"
                                "  \"name\": \"w\", \"request\": { \"path\": \"/\" } } ], \"targets\":\n"
                                "  [ { \"port\": 8080, \"start\": [\"srv\", \"-p\"], \"name\": \"a\" } ],\n"
                                "  \"name\": \"demo\", \"design\": { \"rounds\": 1 } }";
    struct experiment *x = experiment_text_good(experiment_text_small, NULL);
    struct experiment *y = experiment_text_good(moved, NULL);
    static const char *const sets[] = {"design.rounds=2", NULL};
    struct experiment *z = experiment_text_good(experiment_text_small, sets);
    assert_string_equal(x->resolved_json, y->resolved_json);
    assert_memory_equal(x->hash, y->hash, MSG_HASH_BYTES);
    assert_memory_not_equal(x->hash, z->hash, MSG_HASH_BYTES);
    experiment_free(e);
    experiment_free(x);
    experiment_free(y);
    experiment_free(z);
}

/* A file may hold what would be the built-in variable in a text: its bytes are sent as they are. */
static void test_body_that_looks_like_a_variable(void **state)
{
    (void)state;
    static const char data[] = "a ${server.address} b";
    static const char *const sets[] = {"workloads[0].request.body_file=address.txt", NULL};
    struct experiment *again = NULL;
    struct experiment_problems p;
    experiment_text_write("address.txt", data, strlen(data));
    struct experiment *e = experiment_text_good(experiment_text_small, sets);
    assert_int_equal(experiment_parse(e->resolved_json, strlen(e->resolved_json), NULL, &again, &p), ERR_OK);
    assert_string_equal(again->resolved_json, e->resolved_json);
    assert_int_equal(again->workloads[0].request.body.len, strlen(data));
    assert_memory_equal(again->workloads[0].request.body.data, data, strlen(data));
    experiment_free(again);
    experiment_free(e);
}

/* Of a request and of an answer alike: the names are lower case in the resolved text. */
static void test_header_names(void **state)
{
    (void)state;
    static const char text[] =
        "{ \"name\": \"d\", \"targets\": [ { \"name\": \"a\", \"start\": [\"s\"], \"port\": 1 } ],\n"
        "  \"checks\": [ { \"name\": \"c\", \"request\": { \"path\": \"/\", \"headers\":\n"
        "    { \"X-A\": \"1\", \"x-a\": \"2\", \"\u00e9\": \"3\" } }, \"expect\": { \"headers\":\n"
        "    { \"X-A\": \"1\", \"x-a\": \"2\", \"\u00e9\": \"3\" } } } ],\n"
        "  \"workloads\": [ { \"name\": \"w\", \"connections\": 1, \"duration\": \"1s\", \"request\":\n"
        "    { \"path\": \"/\" } } ] }";
    experiment_text_bad(
        text, NULL,
        "3:19: checks[0].request.headers.x-a: is there twice: case does not matter in header names\n"
        "3:31: checks[0].request.headers[\"\u00e9\"]: is not a header name\n"
        "4:19: checks[0].expect.headers.x-a: is there twice: case does not matter in header names\n"
        "4:31: checks[0].expect.headers[\"\u00e9\"]: is not a header name\n");
}

static void test_resolved_text_opens_no_file(void **state)
{
    (void)state;
    static const char text[] =
        "{ \"name\": \"d\", \"targets\": [ { \"name\": \"a\", \"start\": [\"s\"], \"port\": 1 } ],\n"
        "  \"workloads\": [ { \"name\": \"w\", \"connections\": 1, \"duration\": \"1s\", \"request\":\n"
        "    { \"path\": \"/\", \"body_file\": \"/etc/passwd\" } } ] }";
    struct experiment *e = NULL;
    struct experiment_problems p;
    assert_int_equal(experiment_parse(text, strlen(text), NULL, &e, &p), ERR_INVALID);
    assert_int_equal(p.count, 1);
    assert_string_equal(p.items[0].text,
                        "workloads[0].request.body_file: an experiment that was resolved names no files");
    experiment_problems_fini(&p);
    assert_int_equal(experiment_parse("// c\n{}", 7, NULL, &e, &p), ERR_INVALID);
    assert_string_equal(p.items[0].text, "comments are not allowed here");
    experiment_problems_fini(&p);
}

static void test_all_problems_in_file_order(void **state)
{
    (void)state;
    experiment_text_bad(
        "{\n"
        "  \"nam\": \"demo\",\n"
        "  \"gates\": { \"retries\": -1 },\n"
        "  \"targets\": [\n"
        "    { \"name\": \"a b\", \"start\": \"nginx\", \"port\": 0, \"hooks\": [] },\n"
        "    { \"name\": \"b\", \"start\": [], \"env\": { \"PORT\": 3000 }, \"env\": {} }\n"
        "  ],\n"
        "  \"workloads\": [ { \"name\": \"w\", \"connections\": [10, 10], \"duration\": 30,\n"
        "    \"request\": { \"path\": \"index.html\", \"method\": \"post\" } } ]\n"
        "}\n",
        NULL,
        "1:1: name: is missing: what tables and reports call this experiment\n"
        "2:3: nam: unknown key; allowed: ...; did you mean name?\n"
        "3:25: gates.retries: is -1, must be a whole number from 0 to 100\n"
        "5:15: targets[0].name: is \"a b\", must be a name of letters, digits and ._/+-, not starting "
        "with -\n"
        "5:31: targets[0].start: is \"nginx\", must be a list of words, like [\"nginx\", \"-c\", "
        "\"my.conf\"]; no shell splits it\n"
        "5:48: targets[0].port: is 0, must be a port, from 1 to 65535\n"
        "5:51: targets[0].hooks: unknown key; allowed: ...\n"
        "6:5: targets[1].port: is missing: the port the server listens on, like 3000 or \"${port}\"\n"
        "6:29: targets[1].start: has 0 elements, must have 1 to 256 words of a command\n"
        "6:50: targets[1].env.PORT: is 3000, must be a string: put it in quotes\n"
        "6:58: targets[1].env: key is there twice, first on line 6\n"
        "8:53: workloads[0].connections[1]: 10 is there twice\n"
        "8:70: workloads[0].duration: is 30, must be a duration with its unit (us, ms, s, m, h), like "
        "\"10s\"\n"
        "9:26: workloads[0].request.path: is \"index.html\", must be a path that starts with /\n"
        "9:50: workloads[0].request.method: is \"post\", methods are upper case; did you mean POST?\n");
}

static void test_dirs(void **state)
{
    (void)state;
    char apps[96];
    char text[512];
    static const char *const set_apps[] = {"targets[0].dir=apps", NULL};
    static const char *const set_nowhere[] = {"targets[0].dir=/no/such/dir", NULL};
    static const char *const set_copied[] = {"targets[0].dir=apps", "files=[\"dist/**\"]", NULL};
    static const char *const set_dotted[] = {"targets[0].dir=apps/v1..2", "files=[\"dist/**\"]", NULL};
    static const char *const set_outside[] = {"targets[0].dir=apps/../dist", "files=[\"dist/**\"]", NULL};
    char dotted[112];
    snprintf(apps, sizeof apps, "%s/apps", experiment_text_dir);
    snprintf(dotted, sizeof dotted, "%s/v1..2", apps);
    struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_LOCAL, set_apps);
    assert_int_equal(r.err, ERR_INVALID);
    snprintf(text, sizeof text, "--set targets[0].dir=apps: \"apps\" does not exist (looked for %s)", apps);
    assert_string_equal(r.problems.items[0].text, text);
    experiment_text_fini(&r);
    assert_int_equal(mkdir(apps, 0700), 0);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_LOCAL, set_apps);
    assert_int_equal(r.err, ERR_OK);
    experiment_text_fini(&r);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE, set_apps);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "is relative, but `files` names nothing to copy"));
    experiment_text_fini(&r);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE, set_copied);
    assert_int_equal(r.err, ERR_OK);
    experiment_text_fini(&r);
    assert_int_equal(mkdir(dotted, 0700), 0);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE, set_dotted);
    assert_int_equal(r.err, ERR_OK); /* two dots are a way out only where they are a whole part */
    experiment_text_fini(&r);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE, set_outside);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "leads out of the workspace on the server host"));
    experiment_text_fini(&r);
    assert_int_equal(rmdir(dotted), 0);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE,
                             set_nowhere); /* may be there, on the other host */
    assert_int_equal(r.err, ERR_OK);
    experiment_text_fini(&r);
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_LOCAL, set_nowhere);
    assert_int_equal(r.err, ERR_INVALID);
    experiment_text_fini(&r);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 16u << 20);
    char name[LIMIT_NAME_BYTES + 2];
    char set[LIMIT_NAME_BYTES + 16];
    memset(name, 'n', sizeof name);
    name[LIMIT_NAME_BYTES] = '\0';
    snprintf(set, sizeof set, "name=%s", name);
    const char *const sets[] = {set, NULL};
    struct experiment *e = experiment_text_good(experiment_text_small, sets);
    assert_int_equal(strlen(e->name), LIMIT_NAME_BYTES);
    experiment_free(e);
    name[LIMIT_NAME_BYTES] = 'n';
    name[LIMIT_NAME_BYTES + 1] = '\0';
    snprintf(set, sizeof set, "name=%s", name);
    struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, sets);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "has 129 bytes, at most 128 are allowed"));
    experiment_text_fini(&r);
    /* 200 problems and the word that there are more. */
    assert_int_equal(buf_append_text(&b, "{\"x0\":0"), ERR_OK);
    for (int i = 1; i < 300; i++)
        assert_int_equal(buf_printf(&b, ",\"x%d\":0", i), ERR_OK);
    assert_int_equal(buf_append_text(&b, "}"), ERR_OK);
    r = experiment_text_read(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_INVALID);
    assert_int_equal(r.problems.count, LIMIT_PROBLEMS + 1);
    assert_string_equal(r.problems.items[LIMIT_PROBLEMS].text, "103 more problems: mend these first");
    experiment_text_fini(&r);
    /* A list that is too long is no list: what looks at the whole does without it. */
    buf_clear(&b);
    assert_int_equal(buf_append_text(&b, "targets=["), ERR_OK);
    for (unsigned i = 0; i <= LIMIT_TARGETS; i++)
        assert_int_equal(
            buf_printf(&b, "%s{\"name\":\"t%u\",\"start\":[\"x\"],\"port\":1}", i > 0 ? "," : "", i), ERR_OK);
    assert_int_equal(buf_append_text(&b, "]"), ERR_OK);
    const char *const crowd[] = {b.data, "design.fresh_process=job", NULL};
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_REMOTE, crowd);
    assert_int_equal(r.err, ERR_INVALID);
    assert_int_equal(r.problems.count, 1);
    assert_non_null(strstr(r.problems.items[0].text, "has 257 elements, must have 1 to 256 targets"));
    experiment_text_fini(&r);
    /* The file's own size. */
    buf_clear(&b);
    assert_int_equal(buf_append_text(&b, experiment_text_small), ERR_OK);
    while (b.len < LIMIT_EXPERIMENT_BYTES)
        assert_int_equal(buf_append_text(&b, "\n"), ERR_OK);
    experiment_free(experiment_text_good(b.data, NULL));
    assert_int_equal(buf_append_text(&b, "\n"), ERR_OK);
    r = experiment_text_read(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_TOO_BIG);
    experiment_text_fini(&r);
    buf_fini(&b);
}

/* `path` is an object of `count` members, each with `value`. */
static struct experiment_text read_members(const char *path, size_t count, const char *value)
{
    struct buf b;
    buf_init(&b, 1u << 20);
    assert_int_equal(buf_printf(&b, "%s={", path), ERR_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buf_printf(&b, "%s\"K%zu\":%s", i > 0 ? "," : "", i, value), ERR_OK);
    assert_int_equal(buf_append_text(&b, "}"), ERR_OK);
    const char *const sets[] = {"checks=[{\"name\":\"c\",\"request\":{\"path\":\"/\"}}]", b.data, NULL};
    struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, sets);
    buf_fini(&b);
    return r;
}

static void test_limits_of_objects(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t max;
        const char *value;
        const char *message;
    } cases[] = {
        {"targets[0].labels", 64, "\"v\"", "has 65 labels, at most 64 are allowed"},
        {"targets[0].env", LIMIT_ENV_COUNT, "\"\"", "has 257 variables, at most 256 are allowed"},
        {"workloads[0].request.headers", LIMIT_HEADERS, "\"\"", "has 129 headers, at most 128 are allowed"},
        {"checks[0].expect.headers", LIMIT_HEADERS, "\"\"", "has 129 headers, at most 128 are allowed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct experiment_text r = read_members(cases[i].path, cases[i].max, cases[i].value);
        assert_int_equal(r.err, ERR_OK);
        experiment_text_fini(&r);
        r = read_members(cases[i].path, cases[i].max + 1, cases[i].value);
        assert_int_equal(r.err, ERR_INVALID);
        assert_int_equal(r.problems.count, 1);
        assert_non_null(strstr(r.problems.items[0].text, cases[i].message));
        experiment_text_fini(&r);
    }
}

static void test_whole_checks(void **state)
{
    (void)state;
    static const char two_targets[] = "targets=[{\"name\":\"a\",\"start\":[\"x\"],\"port\":1},{\"name\":"
                                      "\"b\",\"start\":[\"x\"],\"port\":1}]";
    static const char *const odd[] = {two_targets, "design={\"rounds\":3,\"order\":\"latin-square\"}", NULL};
    experiment_text_bad(
        experiment_text_small, odd,
        "0:0: --set design={\"rounds\":3,\"order\":\"latin-square\"}: design.rounds: 3 with order "
        "latin-square and 2 targets gives them unequal slots: rounds must be a multiple of 2, "
        "like 4, or the order fixed\n");
    static const char *const ports[] = {two_targets, "design.fresh_process=job", NULL};
    struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, ports);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "1 is the port of targets[0] already"));
    experiment_text_fini(&r);
    static const char *const many[] = {"design.rounds=1000", "workloads[0].connections=[1,2,3]",
                                       "workloads[0].duration=12h", NULL};
    experiment_text_bad(experiment_text_small, many,
                        "0:0: --set design.rounds=1000: the schedule takes over 10000 h\n");
}

static void test_files_that_cannot_be_read(void **state)
{
    (void)state;
    struct experiment *e = NULL;
    struct experiment_problems p;
    struct err_detail d;
    struct experiment_options o = {.file = "/no/such/file.json"};
    assert_int_equal(experiment_read(&o, &e, &p, &d), ERR_NOT_FOUND);
    assert_string_equal(d.text, "cannot read /no/such/file.json: No such file or directory");
    o.file = experiment_text_dir;
    assert_int_equal(experiment_read(&o, &e, &p, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "is a directory; name the experiment file in it"));
    assert_int_equal(p.count, 0);
    experiment_text_bad("", NULL, "1:1: the text is empty");
    experiment_text_bad("[]", NULL, "1:1: is a list, must be an object with $schema, name");
    static const char *const body[] = {"workloads[0].request.body_file=nothing.bin", NULL};
    struct experiment_text r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, body);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "/nothing.bin: No such file"));
    experiment_text_fini(&r);
    char *big = mem_zalloc(LIMIT_RESOLVED_BYTES / 2 + 1, 1);
    experiment_text_write("big.bin", big, LIMIT_RESOLVED_BYTES / 2 + 1);
    free(big);
    static const char *const large[] = {"workloads[0].request.body_file=big.bin", NULL};
    r = experiment_text_read(experiment_text_small, EXPERIMENT_USE_ANY, large);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "big.bin has more than 786432 bytes"));
    experiment_text_fini(&r);
}

static void test_patterns_must_match(void **state)
{
    (void)state;
    static const char *const none[] = {"files=[\"dist/**\", \"*.ts\"]", NULL};
    static const char *const some[] = {"files=[\"dist\", \"*.js\"]", NULL};
    static const enum experiment_use uses[] = {EXPERIMENT_USE_ANY, EXPERIMENT_USE_LOCAL,
                                               EXPERIMENT_USE_REMOTE};
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        struct experiment_text r = experiment_text_read(experiment_text_small, uses[i], none);
        assert_int_equal(r.err, ERR_INVALID);
        assert_int_equal(r.problems.count, 1);
        assert_non_null(strstr(r.problems.items[0].text, "files[1]: \"*.ts\" matches nothing below /"));
        experiment_text_fini(&r);
        r = experiment_text_read(experiment_text_small, uses[i], some);
        assert_int_equal(r.err, ERR_OK);
        experiment_text_fini(&r);
    }
}

#define FILLED_FORMAT                                                                                        \
    "{ \"name\": \"big\", \"targets\": [ { \"name\": \"a\", \"start\": [\"srv\"], \"port\": 8080 } ],"       \
    " \"workloads\": ["                                                                                      \
    " { \"name\": \"v\", \"request\": { \"method\": \"POST\", \"path\": \"/\", \"body\": \"%s\" },"          \
    "   \"connections\": 1, \"duration\": \"1s\" },"                                                         \
    " { \"name\": \"w\", \"request\": { \"method\": \"POST\", \"path\": \"/\", \"body\": \"%s\" },"          \
    "   \"connections\": 1, \"duration\": \"1s\" } ] }"

/* An experiment with bodies of `first` and `second` bytes. */
static struct experiment_text read_filled(size_t first, size_t second)
{
    char *a = mem_zalloc(first + 1, 1);
    char *b = mem_zalloc(second + 1, 1);
    memset(a, 'a', first);
    memset(b, 'b', second);
    char *text = mem_printf(FILLED_FORMAT, a, b);
    struct experiment_text r = experiment_text_read(text, EXPERIMENT_USE_ANY, NULL);
    free(text);
    free(a);
    free(b);
    return r;
}

static void test_resolved_text_has_a_limit(void **state)
{
    (void)state;
    const size_t first = 786000;
    struct experiment_text r = read_filled(first, 1);
    assert_int_equal(r.err, ERR_OK);
    size_t more = LIMIT_RESOLVED_BYTES - strlen(r.e->resolved_json);
    experiment_text_fini(&r);
    assert_true(more < LIMIT_RESOLVED_BYTES / 2); /* else it is the body's own limit that is met */
    r = read_filled(first, 1 + more);
    assert_int_equal(r.err, ERR_OK);
    assert_int_equal(strlen(r.e->resolved_json), LIMIT_RESOLVED_BYTES);
    experiment_text_fini(&r);
    r = read_filled(first, 2 + more);
    assert_int_equal(r.err, ERR_INVALID);
    assert_int_equal(r.problems.count, 1);
    assert_non_null(
        strstr(r.problems.items[0].text, "it has over 1572864 bytes, which is the limit: send smaller"));
    experiment_text_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_resolved_is_a_fixed_point),
        cmocka_unit_test(test_body_that_looks_like_a_variable),
        cmocka_unit_test(test_header_names),
        cmocka_unit_test(test_resolved_text_opens_no_file),
        cmocka_unit_test(test_all_problems_in_file_order),
        cmocka_unit_test(test_dirs),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_of_objects),
        cmocka_unit_test(test_whole_checks),
        cmocka_unit_test(test_patterns_must_match),
        cmocka_unit_test(test_resolved_text_has_a_limit),
        cmocka_unit_test(test_files_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, experiment_text_begin, experiment_text_end);
}
