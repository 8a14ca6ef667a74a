/*
 * splitbench-load: an HTTP/1.1 load generator. Options in, load out, one result on standard output.
 */
#include "agent/load/calibrate.h"
#include "agent/load/events.h"
#include "agent/load/result_json.h"
#include "agent/load/result_text.h"
#include "agent/load/run.h"

#include "common/streams.h"

enum { EXIT_OK, EXIT_NONE_OK, EXIT_USAGE, EXIT_INFRASTRUCTURE };

static int complain(int code, const struct err_detail *d)
{
    fprintf(stderr, "splitbench-load: %s\n", d->text);
    return code;
}

/* The result, or the calibration, or the first with the second in it. */
static void print_result(const struct run_result *r, const struct run_plan *plan, const struct calibration *c)
{
    struct buf out;
    buf_init(&out, LIMIT_RESULT_BYTES);
    if (plan->options->output == OUTPUT_TEXT) {
        if (c != NULL)
            calibrate_print_text(c);
        if (r != NULL)
            result_text(r, plan->options, plan->target);
    } else if (r != NULL) {
        must(result_json(&out, r, plan, c) == ERR_OK);
        fwrite(out.data, 1, out.len, stdout);
    } else {
        struct json_writer j;
        json_write_init(&j, &out, 0);
        calibrate_print_json(c, &j, NULL);
        must(json_write_end(&j) == ERR_OK);
        puts(out.data);
    }
    buf_fini(&out);
}

/* Every phase's requests must add up; that they do not can only be a bug of ours. */
static bool balanced(const struct run_result *r)
{
    bool ok = true;
    for (int p = 0; p < PHASE_COUNT; p++)
        ok = ok && accounts_balanced(&r->tally->accounts[p]);
    return ok;
}

/* No connection was ever of use: none opened, or every hand-shake refused, however late that was said. */
static bool nothing_connected(const struct tally *t)
{
    uint64_t responses = 0;
    uint64_t opening = 0;
    uint64_t all = 0;
    for (int p = 0; p < PHASE_COUNT; p++) {
        responses += t->accounts[p].responses;
        opening += fault_total_of(&t->faults[p], FAULT_CONNECT) + fault_total_of(&t->faults[p], FAULT_TLS);
        all += fault_total(&t->faults[p]);
    }
    return t->hists[TALLY_CONNECT].count == 0 || (responses == 0 && opening != 0 && opening == all);
}

static int exit_code(const struct run_result *r)
{
    if (!balanced(r)) {
        fputs("splitbench-load: the accounts do not balance: this is a bug, do not use the result\n", stderr);
        return EXIT_INFRASTRUCTURE;
    }
    if (nothing_connected(r->tally))
        return EXIT_INFRASTRUCTURE;
    return r->tally->accounts[PHASE_WINDOW].ok != 0 ? EXIT_OK : EXIT_NONE_OK;
}

/* What a run is made of: all of it, or nothing, is set up. */
struct parts {
    struct options options;
    struct target target;
    struct request_set requests;
    struct tls_trust *trust;
};

/* Each worker makes its own configuration; what is wrong with the options is to be known before. */
static enum err check_tls(struct parts *p, struct err_detail *d)
{
    struct tls_options *o = &p->options.tls;
    struct tls_config *trial = NULL;
    if (!p->target.tls)
        return tls_options_given(o)
                   ? err_set(
                         d, ERR_INVALID,
                         "--insecure, --ca, --server-name, --cert, --key and --tls-... are for https:// URLs")
                   : ERR_OK;
    if (o->server_name == NULL)
        o->server_name = p->target.host;
    enum err e = tls_config_read_trust(&p->trust, o, d);
    o->trust = p->trust;
    if (e == ERR_OK)
        e = tls_config_new(&trial, o, d);
    tls_config_free(trial);
    return e;
}

static int run_plan(const struct run_plan *plan, const struct calibration *c, struct err_detail *d)
{
    struct run_result result;
    if (plan->options->events)
        events_enable();
    if (run_load(&result, plan, d) != ERR_OK)
        return complain(EXIT_INFRASTRUCTURE, d);
    print_result(&result, plan, c);
    int code = exit_code(&result);
    run_result_fini(&result);
    return code;
}

static int run(struct parts *p, struct err_detail *d)
{
    const struct options *o = &p->options;
    struct run_plan plan = {.options = o, .target = &p->target, .requests = &p->requests};
    if (o->url != NULL &&
        (target_parse(&p->target, o->url, o->unix_socket, d) != ERR_OK ||
         request_set_build(&p->requests, &p->target, o, d) != ERR_OK || check_tls(p, d) != ERR_OK))
        return complain(EXIT_USAGE, d);
    options_drop_body(&p->options);
    struct calibration calibration;
    if (o->calibrate && calibrate(&calibration, o, d) != ERR_OK)
        return complain(EXIT_INFRASTRUCTURE, d);
    if (o->url == NULL) {
        print_result(NULL, &plan, &calibration);
        return EXIT_OK;
    }
    if (target_resolve(&p->target, o->timeout_ns, d) != ERR_OK)
        return complain(EXIT_INFRASTRUCTURE, d);
    return run_plan(&plan, o->calibrate ? &calibration : NULL, d);
}

int main(int argc, char **argv)
{
    streams_init();
    run_take_signals();
    struct parts parts = {0};
    struct err_detail d = {0};
    int code = EXIT_OK;
    switch (options_parse(&parts.options, argc, argv, &d)) {
    case ARGS_DONE:
        break;
    case ARGS_BAD:
        code = complain(EXIT_USAGE, &d);
        break;
    case ARGS_GO:
        code = run(&parts, &d);
        break;
    }
    target_fini(&parts.target);
    request_set_fini(&parts.requests);
    tls_trust_free(parts.trust);
    options_fini(&parts.options);
    return streams_end("splitbench-load", code, EXIT_INFRASTRUCTURE);
}
