#include "agent/load/options.h"

#include "agent/load/timeline.h"

#include "common/args.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#include <errno.h>

#define THREADS_MAX         1024u
#define REPORT_EVERY_NS_MIN (10 * NS_PER_MS)

enum {
    OPT_WARMUP = 256,
    OPT_CPUS,
    OPT_TIMEOUT,
    OPT_DRAIN,
    OPT_EVENTS,
    OPT_UNIX,
    OPT_NO_KEEPALIVE,
    OPT_BACKEND,
    OPT_CALIBRATE,
    OPT_TEMPLATE,
    OPT_REQUESTS,
    OPT_EXPECT_STATUS,
    OPT_EXPECT_LENGTH,
    OPT_EXPECT_SHA256,
    OPT_REPORT_EVERY,
    OPT_HLOG,
    OPT_INSECURE,
    OPT_CA,
    OPT_SERVER_NAME,
    OPT_ARRIVALS,
    OPT_STAGES,
    OPT_SEED,
    OPT_START_AT,
    OPT_RAMP,
    OPT_PER_CONNECTION,
    OPT_SOURCE,
    OPT_VERSION
};

static const struct args_option table[] = {
    {'c', "connections", "N", "connections in total (default 100)"},
    {'t', "threads", "N", "threads, each with its own loop (default 1)"},
    {'d', "duration", "TIME", "length of the measured window (default 10s)"},
    {'R', "rate", "N", "open loop: requests per second in total, on a schedule"},
    {OPT_STAGES, "stages", "LIST",
     "open loop in stages, like 10s:1000,30s:1000-5000\n(instead of --rate and --duration)"},
    {OPT_ARRIVALS, "arrivals", "KIND", "of an open loop: even (default) or poisson"},
    {OPT_SEED, "seed", "N", "of Poisson arrivals (default 1)"},
    {OPT_WARMUP, "warmup", "TIME", "load before the window that is not measured (default 0)"},
    {'m', "method", "METHOD", "request method (default GET; POST with a body)"},
    {'H', "header", "'K: V'", "a request header; may be repeated"},
    {'b', "body", "TEXT|@FILE", "request body, or the file that holds it"},
    {OPT_TEMPLATE, "template", NULL,
     "fill in {{counter}}, {{random:MIN-MAX}}, {{line:FILE}} in URL, headers and body"},
    {OPT_REQUESTS, "requests", "FILE", "several weighted requests, see splitbench-load(1)"},
    {OPT_EXPECT_STATUS, "expect-status", "LIST", "statuses that are ok (default 2xx), like 200,3xx"},
    {OPT_EXPECT_LENGTH, "expect-length", "N", "bytes that the body must have"},
    {OPT_EXPECT_SHA256, "expect-sha256", "HEX", "hash that the body must have"},
    {OPT_NO_KEEPALIVE, "no-keepalive", NULL, "a new connection for every request"},
    {OPT_PER_CONNECTION, "requests-per-connection", "N", "then the connection is replaced"},
    {OPT_RAMP, "ramp", "TIME", "open the connections evenly over this time (default 0)"},
    {OPT_SOURCE, "source", "ADDRESS", "send from this address; may be repeated: in turn"},
    {OPT_START_AT, "start-at", "NS", "begin at this instant of CLOCK_MONOTONIC"},
    {OPT_TIMEOUT, "timeout", "TIME", "of a request and of opening a connection (default 10s)"},
    {OPT_DRAIN, "drain", "TIME", "how long to await answers after the window (default 5s)"},
    {OPT_INSECURE, "insecure", NULL, "accept any certificate"},
    {OPT_CA, "ca", "FILE", "trust these CA certificates (PEM) instead of the system's"},
    {OPT_SERVER_NAME, "server-name", "NAME", "expect this name in the certificate (default: the URL's host)"},
    {OPT_UNIX, "unix-socket", "PATH", "connect to this socket; the URL still gives Host and path"},
    {OPT_CPUS, "cpus", "LIST", "pin the threads to these CPUs in turn, like 2-3,8"},
    {OPT_BACKEND, "backend", "NAME", "auto (default), io_uring or libuv"},
    {OPT_REPORT_EVERY, "report-every", "TIME", "a line on standard error for each such interval"},
    {OPT_HLOG, "hlog", "FILE", "write an HdrHistogram interval log"},
    {OPT_CALIBRATE, "calibrate", NULL, "measure the generator's own floor first; the URL may be left out"},
    {'o', "output", "FORMAT", "text (default) or json"},
    {OPT_EVENTS, "events", NULL, "one JSON line per event on standard error"},
    {'h', "help", NULL, "this text"},
    {OPT_VERSION, "version", NULL, "the version"},
};

static void print_help(void)
{
    puts("usage: splitbench-load [options] URL\n\n"
         "Sends HTTP/1.1 requests as fast as the connections allow and reports what came back.\n");
    args_print_help(table, ARRAY_LEN(table));
    puts("\nExit status: 0 at least one request succeeded, 1 none did, 2 wrong usage, 3 nothing could "
         "connect.");
}

enum err options_read_file(const char *path, size_t max, char **out, size_t *len, struct err_detail *d)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL)
        return err_set(d, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    char *data = mem_alloc(max + 2);
    *len = fread(data, 1, max + 1, f);
    bool failed = ferror(f) != 0;
    fclose(f);
    data[*len] = '\0';
    *out = mem_realloc(data, *len + 1, 1);
    if (failed)
        return err_set(d, ERR_IO, "cannot read '%s'", path);
    if (*len > max)
        return err_set(d, ERR_TOO_BIG, "'%s' is larger than %zu bytes", path, max);
    return ERR_OK;
}

static enum err take_body(struct options *o, const char *value, struct err_detail *d)
{
    free(o->body);
    o->body = NULL;
    o->has_body = true;
    if (*value == '@')
        return options_read_file(value + 1, LIMIT_BODY_BYTES, &o->body, &o->body_len, d);
    o->body = mem_strdup(value);
    o->body_len = strlen(value);
    return ERR_OK;
}

static enum err take_number(const char *value, uint64_t max, uint32_t *out, const char *what,
                            struct err_detail *d)
{
    uint64_t n = 0;
    enum err e = parse_u64(value, 1, max, &n, what, d);
    *out = (uint32_t)n;
    return e;
}

/* The position of `value` among the words. */
static enum err take_word(const char *value, const char *const *words, unsigned count, unsigned *out,
                          const char *what, struct err_detail *d)
{
    for (*out = 0; *out < count; (*out)++)
        if (strcmp(value, words[*out]) == 0)
            return ERR_OK;
    const char *close = parse_closest(value, words, count);
    *out = 0;
    return err_set(d, ERR_INVALID, "%s: '%s' is not a choice; did you mean %s?", what, value,
                   close != NULL ? close : words[0]);
}

static enum err take_option(struct options *o, int id, const char *value, struct err_detail *d)
{
    unsigned word = 0;
    enum err e;
    switch (id) {
    case 'c':
        return take_number(value, LIMIT_CONNECTIONS, &o->connections, "--connections", d);
    case 't':
        return take_number(value, THREADS_MAX, &o->threads, "--threads", d);
    case 'd':
        o->has_duration = true;
        return parse_duration(value, &o->duration_ns, "--duration", d);
    case 'R':
        o->open_loop = true;
        return take_number(value, PACER_RATE_MAX, &o->rate_per_s, "--rate", d);
    case OPT_STAGES:
        o->open_loop = true;
        return pacer_schedule_parse(&o->schedule, value, d);
    case OPT_ARRIVALS:
        e = take_word(value, (const char *const[]){"even", "poisson"}, 2, &word, "--arrivals", d);
        o->schedule.arrivals = (enum pacer_arrivals)word;
        return e;
    case OPT_SEED:
        return parse_u64(value, 0, UINT64_MAX, &o->seed, "--seed", d);
    case OPT_START_AT:
        return parse_u64(value, 1, UINT64_MAX, &o->start_at_ns, "--start-at", d);
    case OPT_RAMP:
        return parse_duration(value, &o->ramp_ns, "--ramp", d);
    case OPT_PER_CONNECTION:
        return parse_u64(value, 1, UINT64_MAX, &o->requests_per_connection, "--requests-per-connection", d);
    case OPT_SOURCE:
        if (o->source_count == TARGET_ADDRESSES_MAX)
            return err_set(d, ERR_TOO_BIG, "--source: more than %u addresses", TARGET_ADDRESSES_MAX);
        return target_parse_source(&o->sources[o->source_count++], value, d);
    case OPT_WARMUP:
        return parse_duration(value, &o->warmup_ns, "--warmup", d);
    case OPT_TIMEOUT:
        return parse_duration(value, &o->timeout_ns, "--timeout", d);
    case OPT_DRAIN:
        return parse_duration(value, &o->drain_ns, "--drain", d);
    case 'm':
        o->method = value;
        return ERR_OK;
    case 'H':
        if (o->header_count == LIMIT_HEADERS)
            return err_set(d, ERR_TOO_BIG, "--header: more than %u headers", LIMIT_HEADERS);
        o->headers[o->header_count++] = value;
        return ERR_OK;
    case 'b':
        return take_body(o, value, d);
    case OPT_TEMPLATE:
        o->is_template = true;
        return ERR_OK;
    case OPT_REQUESTS:
        o->requests_path = value;
        return ERR_OK;
    case OPT_EXPECT_STATUS:
        return expect_parse_status(&o->expect, value, "--expect-status", d);
    case OPT_EXPECT_LENGTH:
        o->expect.has_length = true;
        return parse_u64(value, 0, UINT64_MAX, &o->expect.length, "--expect-length", d);
    case OPT_EXPECT_SHA256:
        return expect_parse_hash(&o->expect, value, "--expect-sha256", d);
    case OPT_NO_KEEPALIVE:
        o->keep_alive_off = true;
        return ERR_OK;
    case OPT_INSECURE:
        o->insecure = true;
        return ERR_OK;
    case OPT_CA:
        o->ca_file = value;
        return ERR_OK;
    case OPT_SERVER_NAME:
        o->server_name = value;
        return ERR_OK;
    case OPT_UNIX:
        o->unix_socket = value;
        return ERR_OK;
    case OPT_CPUS:
        o->has_cpus = true;
        return parse_cpus(value, &o->cpus, "--cpus", d);
    case OPT_CALIBRATE:
        o->calibrate = true;
        return ERR_OK;
    case OPT_REPORT_EVERY:
        return parse_duration(value, &o->report_every_ns, "--report-every", d);
    case OPT_HLOG:
        o->hlog_path = value;
        return ERR_OK;
    case OPT_BACKEND:
        e = take_word(value, (const char *const[]){"auto", "io_uring", "libuv"}, 3, &word, "--backend", d);
        o->backend = (enum transport_kind)word;
        return e;
    case 'o':
        e = take_word(value, (const char *const[]){"text", "json"}, 2, &word, "--output", d);
        o->output = (enum options_output)word;
        return e;
    case OPT_EVENTS:
        o->events = true;
        return ERR_OK;
    default:
        must(!"an option without a case");
    }
}

/* Rate or stages become the schedule of the window, and the first rate that of the warm-up. */
static enum err make_schedule(struct options *o, struct err_detail *d)
{
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
    enum err e = o->open_loop ? make_schedule(o, d) : ERR_OK;
    if (e != ERR_OK || o->report_every_ns == 0)
        return e;
    if (o->report_every_ns < REPORT_EVERY_NS_MIN ||
        o->duration_ns / o->report_every_ns >= TIMELINE_POINTS_MAX)
        return err_set(d, ERR_INVALID,
                       "--report-every: at least 10ms, and at most %u intervals in the window",
                       TIMELINE_POINTS_MAX);
    return ERR_OK;
}

static enum options_result print_about(int id)
{
    if (id == 'h')
        print_help();
    else
        puts("splitbench-load " SPLITBENCH_BUILD);
    return OPTIONS_DONE;
}

enum options_result options_parse(struct options *o, int argc, char **argv, struct err_detail *d)
{
    *o = (struct options){.connections = 100,
                          .seed = 1,
                          .threads = 1,
                          .duration_ns = 10 * NS_PER_S,
                          .drain_ns = 5 * NS_PER_S,
                          .timeout_ns = 10 * NS_PER_S};
    expect_init(&o->expect);
    struct args a;
    args_init(&a, table, ARRAY_LEN(table), argc, argv);
    enum options_result result = OPTIONS_RUN;
    int id;
    while (result == OPTIONS_RUN && (id = args_next(&a, d)) != ARGS_END) {
        if (id == 'h' || id == OPT_VERSION)
            result = print_about(id);
        else if (id == ARGS_BAD || take_option(o, id, a.value, d) != ERR_OK)
            result = OPTIONS_BAD;
    }
    if (result == OPTIONS_RUN && check_whole(o, &a, d) != ERR_OK)
        result = OPTIONS_BAD;
    args_fini(&a);
    return result;
}

void options_fini(struct options *o)
{
    free(o->body);
    o->body = NULL;
}
