#include "agent/load/options.h"

#include "agent/load/timeline.h"
#include "agent/load/transport.h"
#include "common/args.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/libraries.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>

#define START_AHEAD_NS_MAX  (3600 * NS_PER_S) /* a slip of a digit must not wait for years */
#define REPORT_EVERY_NS_MIN (10 * NS_PER_MS)
#define FIRST_LONG_ID       256 /* of options without a letter: this and their place in the table */
#define WORDS_MAX           4u

/* What becomes of an option's value. */
enum kind {
    SWITCH,   /* bool */
    TEXT,     /* const char * */
    TIME,     /* uint64_t, ns */
    NUMBER,   /* uint64_t within bounds */
    NUMBER32, /* uint32_t within bounds */
    WORD,     /* an enum, by its place among the words */
    OTHER,    /* a function of its own */
    HELP,
    VERSION
};

struct rule {
    struct args_option arg; /* `id`: its letter, or 0 */
    enum kind kind;
    size_t at; /* of the field in struct options */
    uint64_t min;
    uint64_t max;
    const char *words[WORDS_MAX];
    enum err (*take)(struct options *o, const char *value, struct err_detail *d);
};

/* --- options with a function of their own --- */

static enum err take_body(struct options *o, const char *value, struct err_detail *d)
{
    options_drop_body(o);
    o->has_body = true;
    if (*value == '@')
        return file_read(value + 1, FILE_ANY, LIMIT_BODY_BYTES, &o->body, &o->body_len, d);
    o->body = mem_strdup(value);
    o->body_len = strlen(value);
    return ERR_OK;
}

static enum err take_header(struct options *o, const char *value, struct err_detail *d)
{
    if (o->header_count == LIMIT_HEADERS)
        return err_set(d, ERR_TOO_BIG, "--header: more than %u headers", LIMIT_HEADERS);
    o->headers[o->header_count++] = value;
    return ERR_OK;
}

static enum err take_source(struct options *o, const char *value, struct err_detail *d)
{
    if (o->source_count == TARGET_ADDRESSES_MAX)
        return err_set(d, ERR_TOO_BIG, "--source: more than %u addresses", TARGET_ADDRESSES_MAX);
    return target_parse_source(&o->sources[o->source_count++], value, d);
}

static enum err take_duration(struct options *o, const char *value, struct err_detail *d)
{
    o->has_duration = true;
    return parse_duration(value, &o->duration_ns, "--duration", d);
}

static enum err take_stages(struct options *o, const char *value, struct err_detail *d)
{
    return pacer_schedule_parse(&o->schedule, value, d);
}

static enum err take_cpus(struct options *o, const char *value, struct err_detail *d)
{
    o->has_cpus = true;
    return parse_cpus(value, &o->cpus, "--cpus", d);
}

static enum err take_status(struct options *o, const char *value, struct err_detail *d)
{
    return expect_parse_status(&o->expect, value, "--expect-status", d);
}

static enum err take_length(struct options *o, const char *value, struct err_detail *d)
{
    o->expect.has_length = true;
    return parse_u64(value, 0, UINT64_MAX, &o->expect.length, "--expect-length", d);
}

static enum err take_hash(struct options *o, const char *value, struct err_detail *d)
{
    return expect_parse_hash(&o->expect, value, "--expect-sha256", d);
}

/* --- the table --- */

#define AT(field)             .at = offsetof(struct options, field)
#define AS_SWITCH(field)      .kind = SWITCH, AT(field)
#define AS_TEXT(field)        .kind = TEXT, AT(field)
#define AS_TIME(field)        .kind = TIME, AT(field)
#define AS_NUMBER(field, low) .kind = NUMBER, AT(field), .min = (low), .max = UINT64_MAX
#define AS_NUMBER32(field, m) .kind = NUMBER32, AT(field), .min = 1, .max = (m)
#define AS_WORD(field, ...)   .kind = WORD, AT(field), .words = {__VA_ARGS__}
#define AS_OTHER(function)    .kind = OTHER, .take = (function)

static const struct rule rules[] = {
    {{'c', "connections", "N", "connections in total (default 100)"},
     AS_NUMBER32(connections, LIMIT_CONNECTIONS)},
    {{'t', "threads", "N", "threads, each with its own loop (default 1)"},
     AS_NUMBER32(threads, LIMIT_THREADS)},
    {{'d', "duration", "TIME", "length of the measured window (default 10s)"}, AS_OTHER(take_duration)},
    {{0, "warmup", "TIME", "load before the window that is not measured (default 0)"}, AS_TIME(warmup_ns)},
    {{'R', "rate", "N", "open loop: requests per second in total, on a schedule"},
     AS_NUMBER32(rate_per_s, PACER_RATE_MAX)},
    {{0, "stages", "LIST",
      "open loop in stages, like 10s:1000,30s:1000-5000\n(instead of --rate and --duration)"},
     AS_OTHER(take_stages)},
    {{0, "arrivals", "KIND", "of an open loop: even (default) or poisson"},
     AS_WORD(schedule.arrivals, "even", "poisson")},
    {{0, "seed", "N", "of random arrivals and templates (default 1)"}, AS_NUMBER(seed, 0)},
    {{0, "start-at", "NS", "begin at this instant of CLOCK_MONOTONIC"}, AS_NUMBER(start_at_ns, 1)},
    {{0, "ramp", "TIME", "open the connections evenly over this time (default 0)"}, AS_TIME(ramp_ns)},
    {{0, "drain", "TIME", "how long to await answers after the window (default 5s)"}, AS_TIME(drain_ns)},

    {{'m', "method", "METHOD", "request method (default GET; POST with a body)"}, AS_TEXT(method)},
    {{'H', "header", "'K: V'", "a request header; may be repeated"}, AS_OTHER(take_header)},
    {{'b', "body", "TEXT|@FILE", "request body, or the file that holds it"}, AS_OTHER(take_body)},
    {{0, "template", NULL, "fill in {{counter}}, {{random:MIN-MAX}}, {{line:FILE}} in URL, headers and body"},
     AS_SWITCH(is_template)},
    {{0, "requests", "FILE", "several weighted requests, see splitbench-load(1)"}, AS_TEXT(requests_path)},
    {{0, "expect-status", "LIST", "statuses that are ok (default 2xx), like 200,3xx"}, AS_OTHER(take_status)},
    {{0, "expect-length", "N", "bytes that the body must have"}, AS_OTHER(take_length)},
    {{0, "expect-sha256", "HEX", "hash that the body must have"}, AS_OTHER(take_hash)},

    {{0, "no-keepalive", NULL, "a new connection for every request"}, AS_SWITCH(keep_alive_off)},
    {{0, "requests-per-connection", "N", "then the connection is replaced"},
     AS_NUMBER(requests_per_connection, 1)},
    {{0, "timeout", "TIME", "of a request and of opening a connection (default 10s)"}, AS_TIME(timeout_ns)},
    {{0, "source", "ADDRESS", "send from this address; may be repeated: in turn"}, AS_OTHER(take_source)},
    {{0, "unix-socket", "PATH", "connect to this socket; the URL still gives Host and path"},
     AS_TEXT(unix_socket)},

    {{0, "insecure", NULL, "accept any certificate"}, AS_SWITCH(tls.insecure)},
    {{0, "ca", "FILE", "trust these CA certificates (PEM) instead of the system's"}, AS_TEXT(tls.ca_file)},
    {{0, "server-name", "NAME", "expect this name in the certificate (default: the URL's host)"},
     AS_TEXT(tls.server_name)},
    {{0, "cert", "FILE", "show this certificate (PEM, with its chain) to a server that asks"},
     AS_TEXT(tls.cert_file)},
    {{0, "key", "FILE", "its key (PEM), when it is not in the same file"}, AS_TEXT(tls.key_file)},
    {{0, "tls-resume", NULL, "a connection that is opened again goes on with its last session"},
     AS_SWITCH(tls.resume)},
    {{0, "tls-min", "VERSION", "lowest to offer: 1.2 (default) or 1.3"}, AS_WORD(tls.min, "1.2", "1.3")},
    {{0, "tls-max", "VERSION", "highest to offer: 1.2 or 1.3 (default)"}, AS_WORD(tls.max, "1.2", "1.3")},
    {{0, "tls-ciphers", "LIST", "offer these cipher suites alone, with colons between"},
     AS_TEXT(tls.ciphers)},
    {{0, "tls-groups", "LIST", "offer these groups for the key exchange, like X25519:P-256"},
     AS_TEXT(tls.groups)},

    {{0, "cpus", "LIST", "pin the threads to these CPUs in turn, like 2-3,8"}, AS_OTHER(take_cpus)},
    {{0, "backend", "NAME", "auto (default), io_uring or libuv"},
     AS_WORD(backend, "auto", "io_uring", "libuv")},
    {{0, "calibrate", NULL, "measure the generator's own floor first; the URL may be left out"},
     AS_SWITCH(calibrate)},

    {{'o', "output", "FORMAT", "text (default) or json"}, AS_WORD(output, "text", "json")},
    {{0, "report-every", "TIME", "a line on standard error for each such interval"},
     AS_TIME(report_every_ns)},
    {{0, "hlog", "FILE", "write an HdrHistogram interval log"}, AS_TEXT(hlog_path)},
    {{0, "events", NULL, "one JSON line per event on standard error"}, AS_SWITCH(events)},
    {{'h', "help", NULL, "this text"}, .kind = HELP},
    {{0, "version", NULL, "the version"}, .kind = VERSION},
};

/* The table as args.h wants it. */
static void list_args(struct args_option out[ARRAY_LEN(rules)])
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        out[i] = rules[i].arg;
        if (out[i].id == 0)
            out[i].id = FIRST_LONG_ID + (int)i;
    }
}

static const struct rule *rule_of(int id)
{
    size_t i = id >= FIRST_LONG_ID ? (size_t)(id - FIRST_LONG_ID) : 0;
    while (id < FIRST_LONG_ID && rules[i].arg.id != id)
        i++;
    return &rules[i];
}

/* The place of `value` among the words of a rule. */
static enum err take_word(const struct rule *r, const char *value, unsigned *out, const char *what,
                          struct err_detail *d)
{
    unsigned count = 0;
    for (; count < WORDS_MAX && r->words[count] != NULL; count++) {
        if (strcmp(value, r->words[count]) != 0)
            continue;
        *out = count;
        return ERR_OK;
    }
    const char *close = parse_closest(value, r->words, count);
    return err_set(d, ERR_INVALID, "%s: '%s' is not a choice; did you mean %s?", what, value,
                   close != NULL ? close : r->words[0]);
}

static enum err take_option(struct options *o, const struct rule *r, const char *value, struct err_detail *d)
{
    char what[48];
    void *field = (char *)o + r->at;
    uint64_t number = 0;
    enum err e = ERR_OK;
    snprintf(what, sizeof what, "--%s", r->arg.name);
    switch (r->kind) {
    case SWITCH:
        *(bool *)field = true;
        return ERR_OK;
    case TEXT:
        *(const char **)field = value;
        return ERR_OK;
    case TIME:
        return parse_duration(value, field, what, d);
    case NUMBER:
        return parse_u64(value, r->min, r->max, field, what, d);
    case NUMBER32:
        e = parse_u64(value, r->min, r->max, &number, what, d);
        *(uint32_t *)field = (uint32_t)number;
        return e;
    case WORD:
        return take_word(r, value, field, what, d); /* an enum of ours is an unsigned int */
    case OTHER:
        return r->take(o, value, d);
    case HELP:
    case VERSION:
        break; /* end the parsing before they come here */
    }
    return ERR_OK;
}

/* --- what must fit together --- */

/* Rate or stages become the schedule of the window, and the first rate that of the warm-up. */
static enum err make_schedule(struct options *o, struct err_detail *d)
{
    o->open_loop = o->rate_per_s != 0 || o->schedule.count != 0;
    if (!o->open_loop)
        return o->schedule.arrivals == ARRIVALS_EVEN
                   ? ERR_OK
                   : err_set(d, ERR_INVALID, "--arrivals: a closed loop has none; give --rate or --stages");
    if (o->rate_per_s != 0 && o->schedule.count != 0)
        return err_set(d, ERR_INVALID, "--rate and --stages exclude each other");
    if (o->schedule.count != 0 && o->has_duration)
        return err_set(d, ERR_INVALID, "--duration: --stages say how long the window is");
    if (o->schedule.count != 0) {
        o->duration_ns = pacer_schedule_duration(&o->schedule);
    } else {
        o->schedule.stages[0] = (struct pacer_stage){o->duration_ns, o->rate_per_s, o->rate_per_s};
        o->schedule.count = 1;
    }
    double first = o->schedule.stages[0].from_per_s;
    o->warmup_schedule.arrivals = o->schedule.arrivals;
    o->warmup_schedule.stages[0] = (struct pacer_stage){o->warmup_ns, first, first};
    o->warmup_schedule.count = 1;
    return ERR_OK;
}

static enum err check_whole(struct options *o, const struct args *a, struct err_detail *d)
{
    char **operands = NULL;
    int count = args_operands(a, &operands);
    if (count != 1 && !(count == 0 && o->calibrate))
        return err_set(d, ERR_INVALID, "exactly one URL is needed; see --help");
    o->url = count == 1 ? operands[0] : NULL;
    if (o->requests_path != NULL && (o->method != NULL || o->has_body))
        return err_set(d, ERR_INVALID, "--requests: method and body stand in the file");
    if (o->duration_ns == 0 || o->timeout_ns == 0)
        return err_set(d, ERR_INVALID, "--duration and --timeout must be longer than 0");
    if (o->connections < o->threads)
        return err_set(d, ERR_INVALID, "--threads: %u threads cannot share %u connections", o->threads,
                       o->connections);
    if (o->start_at_ns > clock_now_ns() + START_AHEAD_NS_MAX)
        return err_set(d, ERR_INVALID, "--start-at: the instant is more than an hour ahead");
    if (o->unix_socket != NULL && o->source_count != 0)
        return err_set(d, ERR_INVALID, "--source: a unix socket has no addresses");
    enum err e = make_schedule(o, d);
    if (e != ERR_OK || o->report_every_ns == 0)
        return e;
    if (o->report_every_ns < REPORT_EVERY_NS_MIN ||
        o->duration_ns / o->report_every_ns >= TIMELINE_POINTS_MAX)
        return err_set(d, ERR_INVALID,
                       "--report-every: at least 10ms, and at most %u intervals in the window",
                       TIMELINE_POINTS_MAX);
    return ERR_OK;
}

static void print_help(void)
{
    struct args_option args[ARRAY_LEN(rules)];
    list_args(args);
    puts("usage: splitbench-load [options] URL\n       splitbench-load --calibrate [options]\n\n"
         "Sends HTTP/1.1 requests, as fast as the connections allow or on a schedule,\n"
         "and accounts for each.\n");
    args_print_help(args, ARRAY_LEN(rules));
    puts("\nExit status: 0 at least one request succeeded, 1 none did, 2 wrong usage,\n"
         "3 nothing could connect.");
}

static void print_version(void)
{
    const struct library liburing = {"liburing", transport_uring_version()};
    libraries_print_version("splitbench-load", &liburing, 1);
}

enum options_result options_parse(struct options *o, int argc, char **argv, struct err_detail *d)
{
    *o = (struct options){.connections = 100,
                          .seed = 1,
                          .threads = 1,
                          .duration_ns = 10 * NS_PER_S,
                          .drain_ns = 5 * NS_PER_S,
                          .tls.max = TLS_1_3,
                          .timeout_ns = 10 * NS_PER_S};
    expect_init(&o->expect);
    struct args_option list[ARRAY_LEN(rules)];
    struct args a;
    list_args(list);
    args_init(&a, list, ARRAY_LEN(list), argc, argv);
    enum options_result result = OPTIONS_RUN;
    int id;
    while (result == OPTIONS_RUN && (id = args_next(&a, d)) != ARGS_END) {
        const struct rule *r = id != ARGS_BAD ? rule_of(id) : NULL;
        if (r != NULL && r->kind == HELP)
            print_help();
        else if (r != NULL && r->kind == VERSION)
            print_version();
        else if (r == NULL || take_option(o, r, a.value, d) != ERR_OK)
            result = OPTIONS_BAD;
        if (r != NULL && (r->kind == HELP || r->kind == VERSION))
            result = OPTIONS_DONE;
    }
    if (result == OPTIONS_RUN && check_whole(o, &a, d) != ERR_OK)
        result = OPTIONS_BAD;
    args_fini(&a);
    return result;
}

void options_drop_body(struct options *o)
{
    free(o->body);
    o->body = NULL;
}

void options_fini(struct options *o)
{
    options_drop_body(o);
}
