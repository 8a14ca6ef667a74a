#ifndef AGENT_LOAD_OPTIONS_H
#define AGENT_LOAD_OPTIONS_H
/*
 * The command line of splitbench-load, checked. Owned by main; borrowed, unchanging, by everything else.
 */
#include "agent/load/expect.h"
#include "agent/load/pacer.h"
#include "agent/load/target.h"
#include "agent/load/tls_config.h"
#include "agent/load/transport.h"
#include "common/args.h"
#include "common/limits.h"

#include <sched.h>

enum options_output { OUTPUT_TEXT, OUTPUT_JSON };

struct options {
    /* Where to. Texts are argv's own. */
    const char *url; /* NULL with --calibrate alone */
    const char *unix_socket;
    struct tls_options tls; /* its server_name: NULL until main takes the URL's host */
    struct target_address sources[TARGET_ADDRESSES_MAX];
    size_t source_count;

    /* What. */
    const char *requests_path; /* NULL: one request, from here */
    const char *method;        /* NULL: GET, or POST with a body */
    struct args_texts headers;
    char *body; /* owned */
    size_t body_len;
    struct expect expect;

    /* How much, and when. */
    uint64_t duration_ns;
    uint64_t warmup_ns;
    uint64_t drain_ns;
    uint64_t timeout_ns;  /* of a request, and of opening a connection */
    uint64_t start_at_ns; /* 0: as soon as the connections are open */
    uint64_t ramp_ns;     /* over which the connections are opened */
    uint64_t seed;
    uint64_t requests_per_connection; /* 0: no limit */
    struct pacer_schedule schedule;   /* of the window, in open loop */
    struct pacer_schedule warmup_schedule;
    uint32_t connections;
    uint32_t threads;
    uint32_t rate_per_s; /* --rate; 0: by stages */

    /* What comes out. */
    enum options_output output;
    enum transport_kind backend;
    uint64_t report_every_ns; /* 0: no lines */
    const char *hlog_path;    /* NULL: none */
    cpu_set_t cpus;

    bool open_loop;
    bool has_duration;
    bool has_body;
    bool has_cpus;
    bool is_template; /* --template: {{...}} in URL, headers and body is filled in */
    bool keep_alive_off;
    bool events;
    bool calibrate;
};

enum args_result options_parse(struct options *o, int argc, char **argv, struct err_detail *d);

/* The requests hold copies: a large body is not kept twice. */
void options_drop_body(struct options *o);
void options_fini(struct options *o);

#endif
