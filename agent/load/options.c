#include "agent/load/options.h"

#include "agent/load/timeline.h"
#include "agent/load/transport.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/libraries.h"
#include "common/mem.h"
#include "common/parse.h"

#define START_AHEAD_NS_MAX  (3600 * NS_PER_S) /* a slip of a digit must not wait for years */
#define REPORT_EVERY_NS_MIN (10 * NS_PER_MS)

/* ---- options with a function of their own ---- */

static enum err take_body(void *into, const char *value, const char *what, struct err_detail *d)
{
    struct options *o = into;
    (void)what;
    options_drop_body(o);
    o->has_body = true;
    if (*value == '@')
        return file_read(value + 1, FILE_ANY, LIMIT_BODY_BYTES, &o->body, &o->body_len, d);
    o->body = mem_strdup(value);
    o->body_len = strlen(value);
    return ERR_OK;
}

static enum err take_source(void *into, const char *value, const char *what, struct err_detail *d)
{
    struct options *o = into;
    if (o->source_count == TARGET_ADDRESSES_MAX)
        return err_set(d, ERR_TOO_BIG, "%s: at most %u of them", what, TARGET_ADDRESSES_MAX);
    return target_parse_source(&o->sources[o->source_count++], value, d);
}

static enum err take_stages(void *into, const char *value, const char *what, struct err_detail *d)
{
    (void)what;
    return pacer_schedule_parse(&((struct options *)into)->schedule, value, d);
}

static enum err take_cpus(void *into, const char *value, const char *what, struct err_detail *d)
{
    return parse_cpus(value, &((struct options *)into)->cpus, what, d);
}

static enum err take_status(void *into, const char *value, const char *what, struct err_detail *d)
{
    return expect_parse_status(&((struct options *)into)->expect, value, what, d);
}

static enum err take_hash(void *into, const char *value, const char *what, struct err_detail *d)
{
    return expect_parse_hash(&((struct options *)into)->expect, value, what, d);
}

static void print_version(void)
{
    const struct library liburing = {"liburing", transport_uring_version()};
    libraries_print_version("splitbench-load", &liburing, 1);
}

/* ---- the table ---- */

#define AT(field)    .at = offsetof(struct options, field)
#define GIVEN(field) .given = offsetof(struct options, field)

static const struct args_option rows[] = {
    {"c", "connections", "N", "connections in total", ARGS_NUMBER32, AT(connections), .min = 1,
     .max = LIMIT_CONNECTIONS, .otherwise = "100"},
    {"t", "threads", "N", "threads, each with its own loop", ARGS_NUMBER32, AT(threads), .min = 1,
     .max = LIMIT_THREADS, .otherwise = "1"},
    {"d", "duration", "TIME", "length of the measured window", ARGS_TIME, AT(duration_ns),
     GIVEN(has_duration), .min = 1, .otherwise = "10s"},
    {"", "warmup", "TIME", "load before the window that is not measured", ARGS_TIME, AT(warmup_ns),
     .otherwise = "0"},
    {"R", "rate", "N", "open loop: requests per second in total, on a schedule", ARGS_NUMBER32,
     AT(rate_per_s), .min = 1, .max = PACER_RATE_MAX},
    {"", "stages", "LIST",
     "open loop in stages, like 10s:1000,30s:1000-5000 (instead of --rate and --duration)", ARGS_OTHER,
     .take = take_stages},
    {"", "arrivals", "KIND", "of an open loop:", ARGS_WORD, AT(schedule.arrivals),
     .words = {"even", "poisson"}, .otherwise = "even"},
    {"", "seed", "N", "of random arrivals and templates", ARGS_NUMBER, AT(seed), .otherwise = "1"},
    {"", "start-at", "NS", "begin at this instant of CLOCK_MONOTONIC", ARGS_NUMBER, AT(start_at_ns),
     .min = 1},
    {"", "ramp", "TIME", "open the connections evenly over this time", ARGS_TIME, AT(ramp_ns),
     .otherwise = "0"},
    {"", "drain", "TIME", "how long to await answers after the window", ARGS_TIME, AT(drain_ns),
     .otherwise = "5s"},

    {"m", "method", "METHOD", "request method (default GET; POST with a body)", ARGS_TEXT, AT(method)},
    {"H", "header", "'K: V'", "a request header; may be repeated", ARGS_TEXTS, AT(headers),
     .max = LIMIT_HEADERS},
    {"b", "body", "TEXT|@FILE", "request body, or the file that holds it", ARGS_OTHER, .take = take_body},
    {"", "template", NULL, "fill in {{counter}}, {{random:MIN-MAX}}, {{line:FILE}} in URL, headers and body",
     ARGS_SWITCH, AT(is_template)},
    {"", "requests", "FILE", "several weighted requests, see splitbench-load(1)", ARGS_TEXT,
     AT(requests_path)},
    {"", "expect-status", "LIST", "statuses that are ok (default 2xx), like 200,3xx", ARGS_OTHER,
     .take = take_status},
    {"", "expect-length", "N", "bytes that the body must have", ARGS_NUMBER, AT(expect.length),
     GIVEN(expect.has_length)},
    {"", "expect-sha256", "HEX", "hash that the body must have", ARGS_OTHER, .take = take_hash},

    {"", "no-keepalive", NULL, "a new connection for every request", ARGS_SWITCH, AT(keep_alive_off)},
    {"", "requests-per-connection", "N", "then the connection is replaced", ARGS_NUMBER,
     AT(requests_per_connection), .min = 1},
    {"", "timeout", "TIME", "of a request and of opening a connection", ARGS_TIME, AT(timeout_ns), .min = 1,
     .otherwise = "10s"},
    {"", "source", "ADDRESS", "send from this address; may be repeated: in turn", ARGS_OTHER,
     .take = take_source},
    {"", "unix-socket", "PATH", "connect to this socket; the URL still gives Host and path", ARGS_TEXT,
     AT(unix_socket)},

    {"", "insecure", NULL, "accept any certificate", ARGS_SWITCH, AT(tls.insecure)},
    {"", "ca", "FILE", "trust these CA certificates (PEM) instead of the system's", ARGS_TEXT,
     AT(tls.ca_file)},
    {"", "server-name", "NAME", "expect this name in the certificate (default: the URL's host)", ARGS_TEXT,
     AT(tls.server_name)},
    {"", "cert", "FILE", "show this certificate (PEM, with its chain) to a server that asks", ARGS_TEXT,
     AT(tls.cert_file)},
    {"", "key", "FILE", "its key (PEM), when it is not in the same file", ARGS_TEXT, AT(tls.key_file)},
    {"", "tls-resume", NULL, "a connection that is opened again goes on with its last session", ARGS_SWITCH,
     AT(tls.resume)},
    {"", "tls-min", "VERSION", "lowest to offer:", ARGS_WORD, AT(tls.min), .words = {"1.2", "1.3"},
     .otherwise = "1.2"},
    {"", "tls-max", "VERSION", "highest to offer:", ARGS_WORD, AT(tls.max), .words = {"1.2", "1.3"},
     .otherwise = "1.3"},
    {"", "tls-ciphers", "LIST", "offer these cipher suites alone, with colons between", ARGS_TEXT,
     AT(tls.ciphers)},
    {"", "tls-groups", "LIST", "offer these groups for the key exchange, like X25519:P-256", ARGS_TEXT,
     AT(tls.groups)},

    {"", "cpus", "LIST", "pin the threads to these CPUs in turn, like 2-3,8", ARGS_OTHER, GIVEN(has_cpus),
     .take = take_cpus},
    {"", "backend", "NAME", "how it reads and writes:", ARGS_WORD, AT(backend),
     .words = {"auto", "io_uring", "libuv"}, .otherwise = "auto"},
    {"", "calibrate", NULL, "measure the generator's own floor first; the URL may be left out", ARGS_SWITCH,
     AT(calibrate)},

    {"o", "output", "FORMAT", "of the result:", ARGS_WORD, AT(output), .words = {"text", "json"},
     .otherwise = "text"},
    {"", "report-every", "TIME", "a line on standard error for each such interval", ARGS_TIME,
     AT(report_every_ns)},
    {"", "hlog", "FILE", "write an HdrHistogram interval log", ARGS_TEXT, AT(hlog_path)},
    {"", "events", NULL, "one JSON line per event on standard error", ARGS_SWITCH, AT(events)},
    {ARGS_HELP_ROW},
    {"", "version", NULL, "the version", ARGS_PRINT, .print = print_version},
};

static const struct args_table table = {
    ARGS_ROWS(rows),
    .usage = "usage: splitbench-load [options] URL\n       splitbench-load --calibrate [options]\n\n"
             "Sends HTTP/1.1 requests, as fast as the connections allow or on a schedule,\n"
             "and accounts for each.\n\n",
    .more = "\nExit status: 0 at least one request succeeded, 1 none did, 2 wrong usage,\n"
            "3 nothing could connect.\n",
    .operands_max = 1,
};

/* ---- what must fit together ---- */

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

static enum err check_whole(struct options *o, struct err_detail *d)
{
    if (o->url == NULL && !o->calibrate)
        return err_set(d, ERR_INVALID, "exactly one URL is needed; see --help");
    if (o->requests_path != NULL && (o->method != NULL || o->has_body))
        return err_set(d, ERR_INVALID, "--requests: method and body stand in the file");
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

enum args_result options_parse(struct options *o, int argc, char **argv, struct err_detail *d)
{
    char **operands;
    int count;
    *o = (struct options){0};
    expect_init(&o->expect);
    enum args_result result = args_parse(&table, argc, argv, o, &operands, &count, d);
    o->url = result == ARGS_GO ? operands[0] : NULL; /* argv ends with NULL */
    return result == ARGS_GO && check_whole(o, d) != ERR_OK ? ARGS_BAD : result;
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
