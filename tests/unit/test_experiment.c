/* The experiment file: what it becomes, what is refused and where, variables, --set, the resolved text. */
#include "controller/experiment.h"

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

static char dir[64];
static char file[96];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/splitbench-test-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(file, sizeof file, "%s/x.json", dir);
    return 0;
}

static void write_file(const char *name, const void *data, size_t len)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static int remove_dir(void **state)
{
    (void)state;
    char path[160];
    static const char *const names[] = {"x.json", "body.bin", "big.bin"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/apps", dir);
    rmdir(path);
    return rmdir(dir);
}

static const char good[] =
    "{ \"name\": \"demo\",\n"
    "  \"targets\": [ { \"name\": \"a\", \"start\": [\"srv\", \"-p\"], \"port\": 8080 } ],\n"
    "  \"workloads\": [ { \"name\": \"w\", \"request\": { \"path\": \"/\" }, \"connections\": 10,\n"
    "                   \"duration\": \"1s\" } ] }\n";

#define SETS_MAX 8
struct result {
    enum err err;
    struct experiment *e;
    struct experiment_problems problems;
    struct err_detail d;
};

/* Reads `text` with options like "design.rounds=2", NULL-terminated. */
static struct result read_with(const char *text, enum experiment_use use, const char *const *options)
{
    struct experiment_set sets[SETS_MAX];
    char *copies[SETS_MAX];
    size_t n = 0;
    struct result r = {0};
    for (; options != NULL && options[n] != NULL; n++) {
        copies[n] = mem_strdup(options[n]);
        assert_int_equal(experiment_split_set(copies[n], &sets[n], NULL), ERR_OK);
    }
    write_file("x.json", text, strlen(text));
    struct experiment_options o = {.file = file, .sets = sets, .set_count = n, .use = use};
    r.err = experiment_read(&o, &r.e, &r.problems, &r.d);
    for (size_t i = 0; i < n; i++)
        free(copies[i]);
    return r;
}

static void result_fini(struct result *r)
{
    experiment_free(r->e);
    experiment_problems_fini(&r->problems);
}

static struct experiment *read_good(const char *text, const char *const *options)
{
    struct result r = read_with(text, EXPERIMENT_USE_ANY, options);
    if (r.err != ERR_OK)
        fail_msg("%s: %s", text, r.problems.count > 0 ? r.problems.items[0].text : r.d.text);
    return r.e;
}

/* All problems as "line:column: text;", in order. */
static void read_bad(const char *text, const char *const *options, const char *wanted)
{
    struct buf all;
    buf_init(&all, 1u << 20);
    struct result r = read_with(text, EXPERIMENT_USE_ANY, options);
    assert_int_equal(r.err, ERR_INVALID);
    assert_null(r.e);
    for (size_t i = 0; i < r.problems.count; i++)
        assert_int_equal(buf_printf(&all, "%u:%u: %s\n", r.problems.items[i].line, r.problems.items[i].column,
                                    r.problems.items[i].text),
                         ERR_OK);
    if (strncmp(all.data, wanted, strlen(wanted)) != 0) {
        fprintf(stderr, "%s\n--- got:\n%s\n--- wanted:\n%s\n", text, all.data,
                wanted); /* cmocka cuts at 1 KB */
        fail();
    }
    buf_fini(&all);
    result_fini(&r);
}

static void test_defaults(void **state)
{
    (void)state;
    struct experiment *e = read_good(good, NULL);
    assert_string_equal(e->name, "demo");
    assert_int_equal(e->role_count, 2);
    assert_string_equal(e->roles[1].name, "load");
    assert_int_equal(e->roles[1].count, 1);
    assert_string_equal(e->targets[0].dir, "");
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
    assert_string_equal(e->base_dir, dir);
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
    write_file("body.bin", "\x00\xff$x", 4);
    struct experiment *e = read_good(full, NULL);
    assert_string_equal(e->roles[0].labels[0].value, "sut");
    assert_int_equal(e->roles[1].count, 2);
    assert_int_equal(e->files.count, 2);
    const struct experiment_target *t = &e->targets[0];
    assert_string_equal(t->build[1].argv.items[2], "b${x}");
    assert_string_equal(t->start.items[1], "3000");
    assert_string_equal(t->env.items[0], "PORT=3000");
    assert_string_equal(t->env.items[1], "E=");
    assert_int_equal(t->port, 3000);
    assert_int_equal(t->ready.kind, MSG_READY_HTTP);
    assert_string_equal(t->ready.path, "/up");
    assert_true(t->ready.timeout_ns == 1500 * NS_PER_MS);
    assert_true(t->stop_grace_ns == 0);
    assert_string_equal(t->cpus, "0-1");
    assert_int_equal(e->targets[1].ready.port, 2);
    assert_int_equal(e->targets[1].port, 1);
    assert_int_equal(e->targets[2].port, 3);
    const struct msg_check *c = &e->checks[0].check;
    assert_int_equal(c->status, 404);
    assert_int_equal(c->body.kind, MSG_MATCH_CONTAINS);
    assert_int_equal(c->body.text.len, 4);
    assert_memory_equal(c->body.text.data, "3000", 4);
    assert_string_equal(c->headers[0].name, "content-type");
    assert_int_equal(c->headers[0].kind, MSG_MATCH_EXACT);
    assert_true(c->has_body_bytes);
    assert_int_equal(e->checks[1].check.status, 200);
    assert_int_equal(e->checks[1].check.body.kind, MSG_MATCH_NONE);
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
    write_file("body.bin", "\x00\xff$x", 4);
    struct experiment *e = read_good(full, NULL);
    struct experiment *again = NULL;
    struct experiment_problems p;
    struct experiment_options o = {.base_dir = "/elsewhere"};
    assert_int_equal(experiment_parse(e->resolved_json, strlen(e->resolved_json), &o, &again, &p), ERR_OK);
    assert_string_equal(again->resolved_json, e->resolved_json);
    assert_memory_equal(again->hash, e->hash, MSG_HASH_BYTES);
    assert_string_equal(again->base_dir, "/elsewhere");
    assert_string_equal(again->targets[0].build[1].argv.items[2], "b${x}");
    assert_int_equal(again->workloads[0].request.body.len, 4);
    experiment_free(again);
    /* A comment, another order of keys: the same experiment, the same hash. */
    static const char moved[] = "{ \"workloads\": [ { \"connections\": [10], \"duration\": \"1000ms\", /**/\n"
                                "  \"name\": \"w\", \"request\": { \"path\": \"/\" } } ], \"targets\":\n"
                                "  [ { \"port\": 8080, \"start\": [\"srv\", \"-p\"], \"name\": \"a\" } ],\n"
                                "  \"name\": \"demo\", \"design\": { \"rounds\": 1 } }";
    struct experiment *x = read_good(good, NULL);
    struct experiment *y = read_good(moved, NULL);
    static const char *const sets[] = {"design.rounds=2", NULL};
    struct experiment *z = read_good(good, sets);
    assert_string_equal(x->resolved_json, y->resolved_json);
    assert_memory_equal(x->hash, y->hash, MSG_HASH_BYTES);
    assert_memory_not_equal(x->hash, z->hash, MSG_HASH_BYTES);
    experiment_free(e);
    experiment_free(x);
    experiment_free(y);
    experiment_free(z);
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
    read_bad("{\n"
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
             "2:3: nam: unknown key; allowed: $schema, name, vars, roles, files, targets, checks, workloads, "
             "design, gates; did you mean name?\n"
             "3:25: gates.retries: is -1, must be a whole number from 0 to 100\n"
             "5:15: targets[0].name: is \"a b\", must be a name of letters, digits and ._/+-, not starting "
             "with -\n"
             "5:31: targets[0].start: is \"nginx\", must be a list of words, like [\"nginx\", \"-c\", "
             "\"my.conf\"]; no shell splits it\n"
             "5:48: targets[0].port: is 0, must be a port, from 1 to 65535\n"
             "5:51: targets[0].hooks: unknown key; allowed: name, labels, dir, build, start, env, port, "
             "ready, cpus, stop_grace\n"
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
    struct experiment *e = read_good(good, sets);
    assert_int_equal(e->design.rounds, 4);
    assert_int_equal(e->targets[0].port, 9000);
    assert_true(e->workloads[0].duration_ns == 2 * NS_PER_S);
    assert_string_equal(e->targets[0].env.items[0], "X_Y=5");
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
        read_bad(good, sets, cases[i].wanted);
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
    struct experiment *e = read_good(text, NULL);
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
    e = read_good(text, sets);
    assert_int_equal(e->targets[0].port, 7);
    assert_string_equal(e->targets[0].name, "x7y");
    experiment_free(e);
    read_bad("{ \"vars\": { \"port\": 1, \"b\": \"${later}\", \"later\": [], \"a-b\": 1 },\n\"name\": "
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
    struct experiment *e = read_good(text, NULL);
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
    read_bad(
        text, wrong,
        "0:0: --set targets[0].labels={\"a\":\"${server.address}\"}: targets[0].labels.a: "
        "${server.address} can stand in build, start and env of a target and in headers of a request only\n"
        "0:0: --set targets[0].start=[\"$${server.address}\"]: targets[0].start[0]: ${server.address} "
        "cannot be had as plain characters\n"
        "0:0: --set workloads[0].request.path=/${server.address}: ${server.address} can stand in build");
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
    struct result r = read_with(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_INVALID);
    bool found = false;
    for (size_t i = 0; i < r.problems.count; i++)
        found = found || strstr(r.problems.items[i].text, "have over 4194304 bytes when these are filled in");
    assert_true(found);
    result_fini(&r);
    buf_fini(&b);
}

static void test_dirs(void **state)
{
    (void)state;
    char apps[96];
    char text[512];
    static const char *const set_apps[] = {"targets[0].dir=apps", NULL};
    static const char *const set_nowhere[] = {"targets[0].dir=/no/such/dir", NULL};
    static const char *const set_copied[] = {"targets[0].dir=apps", "files=[\"apps/**\"]", NULL};
    snprintf(apps, sizeof apps, "%s/apps", dir);
    struct result r = read_with(good, EXPERIMENT_USE_LOCAL, set_apps);
    assert_int_equal(r.err, ERR_INVALID);
    snprintf(text, sizeof text, "--set targets[0].dir=apps: \"apps\" does not exist (looked for %s)", apps);
    assert_string_equal(r.problems.items[0].text, text);
    result_fini(&r);
    assert_int_equal(mkdir(apps, 0700), 0);
    r = read_with(good, EXPERIMENT_USE_LOCAL, set_apps);
    assert_int_equal(r.err, ERR_OK);
    result_fini(&r);
    r = read_with(good, EXPERIMENT_USE_REMOTE, set_apps);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "is relative, but `files` names nothing to copy"));
    result_fini(&r);
    r = read_with(good, EXPERIMENT_USE_REMOTE, set_copied);
    assert_int_equal(r.err, ERR_OK);
    result_fini(&r);
    r = read_with(good, EXPERIMENT_USE_REMOTE, set_nowhere); /* may be there, on the other host */
    assert_int_equal(r.err, ERR_OK);
    result_fini(&r);
    r = read_with(good, EXPERIMENT_USE_LOCAL, set_nowhere);
    assert_int_equal(r.err, ERR_INVALID);
    result_fini(&r);
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
    struct experiment *e = read_good(good, sets);
    assert_int_equal(strlen(e->name), LIMIT_NAME_BYTES);
    experiment_free(e);
    name[LIMIT_NAME_BYTES] = 'n';
    name[LIMIT_NAME_BYTES + 1] = '\0';
    snprintf(set, sizeof set, "name=%s", name);
    struct result r = read_with(good, EXPERIMENT_USE_ANY, sets);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "has 129 bytes, at most 128 are allowed"));
    result_fini(&r);
    /* 200 problems and the word that there are more. */
    assert_int_equal(buf_append_text(&b, "{\"x0\":0"), ERR_OK);
    for (int i = 1; i < 300; i++)
        assert_int_equal(buf_printf(&b, ",\"x%d\":0", i), ERR_OK);
    assert_int_equal(buf_append_text(&b, "}"), ERR_OK);
    r = read_with(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_INVALID);
    assert_int_equal(r.problems.count, LIMIT_PROBLEMS + 1);
    assert_string_equal(r.problems.items[LIMIT_PROBLEMS].text, "103 more problems: mend these first");
    result_fini(&r);
    /* The file's own size. */
    buf_clear(&b);
    assert_int_equal(buf_append_text(&b, good), ERR_OK);
    while (b.len < LIMIT_EXPERIMENT_BYTES)
        assert_int_equal(buf_append_text(&b, "\n"), ERR_OK);
    experiment_free(read_good(b.data, NULL));
    assert_int_equal(buf_append_text(&b, "\n"), ERR_OK);
    r = read_with(b.data, EXPERIMENT_USE_ANY, NULL);
    assert_int_equal(r.err, ERR_TOO_BIG);
    result_fini(&r);
    buf_fini(&b);
}

static void test_whole_checks(void **state)
{
    (void)state;
    static const char *const odd[] = {"targets=[{\"name\":\"a\",\"start\":[\"x\"],\"port\":1},{\"name\":"
                                      "\"b\",\"start\":[\"x\"],\"port\":1}]",
                                      "design={\"rounds\":3,\"order\":\"latin-square\"}", NULL};
    read_bad(good, odd,
             "0:0: --set design={\"rounds\":3,\"order\":\"latin-square\"}: design.rounds: 3 with order "
             "latin-square and 2 targets gives them unequal slots: rounds must be a multiple of 2, "
             "like 4, or the order fixed\n");
    static const char *const ports[] = {odd[0], "design.fresh_process=job", NULL};
    struct result r = read_with(good, EXPERIMENT_USE_ANY, ports);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "1 is the port of targets[0] already"));
    result_fini(&r);
    static const char *const many[] = {"design.rounds=1000", "workloads[0].connections=[1,2,3]",
                                       "workloads[0].duration=12h", NULL};
    read_bad(good, many, "0:0: --set design.rounds=1000: the schedule takes over 10000 h\n");
}

static void test_files_that_cannot_be_read(void **state)
{
    (void)state;
    struct experiment *e = NULL;
    struct experiment_problems p;
    struct err_detail d;
    struct experiment_options o = {.file = "/no/such/file.json"};
    assert_int_equal(experiment_read(&o, &e, &p, &d), ERR_NOT_FOUND);
    assert_string_equal(d.text, "/no/such/file.json: No such file or directory");
    o.file = dir;
    assert_int_equal(experiment_read(&o, &e, &p, &d), ERR_INVALID);
    assert_non_null(strstr(d.text, "is a directory; name the experiment file in it"));
    assert_int_equal(p.count, 0);
    read_bad("", NULL, "1:1: the text is empty");
    read_bad("[]", NULL, "1:1: is a list, must be an object with $schema, name");
    static const char *const body[] = {"workloads[0].request.body_file=nothing.bin", NULL};
    struct result r = read_with(good, EXPERIMENT_USE_ANY, body);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "/nothing.bin: does not exist"));
    result_fini(&r);
    char *big = mem_zalloc(LIMIT_RESOLVED_BYTES / 2 + 1, 1);
    write_file("big.bin", big, LIMIT_RESOLVED_BYTES / 2 + 1);
    free(big);
    static const char *const large[] = {"workloads[0].request.body_file=big.bin", NULL};
    r = read_with(good, EXPERIMENT_USE_ANY, large);
    assert_int_equal(r.err, ERR_INVALID);
    assert_non_null(strstr(r.problems.items[0].text, "has 786433 bytes, at most 786432 are allowed"));
    result_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_resolved_is_a_fixed_point),
        cmocka_unit_test(test_resolved_text_opens_no_file),
        cmocka_unit_test(test_all_problems_in_file_order),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_bad_sets),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_server_address),
        cmocka_unit_test(test_variables_cannot_grow_without_end),
        cmocka_unit_test(test_dirs),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_whole_checks),
        cmocka_unit_test(test_files_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
