#ifndef COMMON_FIGURE_LIST_H
#define COMMON_FIGURE_LIST_H
/*
 * The figures of a window, one row each. The message between agent and controller, the generator's result and
 * how the agent reads it, the columns of the store, what several load hosts and several rounds come to, the
 * report's JSON and the tables of docs/report.md all follow from these rows. A new figure is a row here and
 * the code that measures it.
 *
 * Macros only: proto/splitbench.proto.in is preprocessed with this file.
 *
 * Columns:
 *   NAME, name  name_unit; the name on the wire, in the store and in JSON
 *   number      of its field on the wire: never changed, never used again
 *   since       the store's schema from which on there is a column for it. The figures of schema 1 were sent
 *               and stored before there was a way to say "unknown": every sender measured them all, and left
 *               zeros out of the message
 *   hosts       over load hosts: SUM, or MAX; unknown as soon as one host does not know it
 *   rounds      over the valid attempts of a cell: SUM, USAGE (how many know it, mean, maximum), or EACH:
 *               it stays with its attempt
 *   help        one line for docs/report.md
 */

/* The store's schema now: one more for each release that adds rows (or changes the store otherwise:
 * controller/store/store_schema.c). */
#define FIGURE_SCHEMA 4

/*
 * What the generator says of itself and of its requests; in message Loaded, numbers from 6 on.
 * X(NAME, name, number, since, group, key, hosts, rounds, help)
 *   group, key  where it is in the generator's result (docs/load.md); "" is the result itself, NULL is
 * nowhere: the agent works it out. Rows of one group stand together. New figures go into "figures".
 */
#define FIGURE_LOAD_LIST(X)                                                                                  \
    X(REQUESTS_SENT, requests_sent, 6, 1, "totals", "requests_sent", SUM, EACH,                              \
      "requests of which a byte was handed to the kernel, in all phases")                                    \
    X(RESPONSES, responses, 7, 1, "totals", "responses", SUM, EACH, "whole answers, in all phases")          \
    X(BODY_BYTES, body_bytes, 8, 1, "bytes", "body", SUM, SUM, "of the window's ok answers")                 \
    X(WIRE_IN_BYTES, wire_in_bytes, 9, 1, "bytes", "wire_in", SUM, EACH,                                     \
      "everything that came in the window")                                                                  \
    X(WIRE_OUT_BYTES, wire_out_bytes, 10, 1, "bytes", "wire_out", SUM, EACH,                                 \
      "everything that left in the window")                                                                  \
    X(SHORT_BODIES, short_bodies, 11, 1, "", "short_bodies", SUM, EACH,                                      \
      "answers of the window that were cut off in their body")                                               \
    X(UNANSWERED, unanswered, 19, 1, NULL, NULL, SUM, EACH,                                                  \
      "of the requests in flight at the end: how many failed, or got no answer while the generator "         \
      "drained. "                                                                                            \
      "They are in no latency figure, so any of them makes an attempt invalid like a failed request")        \
    X(CPU_USER_NS, cpu_user_ns, 15, 1, "cpu", "user_ns", SUM, EACH,                                          \
      "of the generator's load threads, in the window")                                                      \
    X(CPU_SYSTEM_NS, cpu_system_ns, 16, 1, "cpu", "system_ns", SUM, EACH, "the same, in the kernel")         \
    X(RSS_BYTES_MAX, rss_bytes_max, 17, 1, "", "rss_bytes_max", SUM, EACH, "peak memory of the generator")   \
    X(CONTEXT_SWITCHES_VOLUNTARY, context_switches_voluntary, 20, 3, "figures",                              \
      "context_switches_voluntary", SUM, USAGE,                                                              \
      "times that a thread of the generator gave its CPU up to wait, in the window")                         \
    X(CONTEXT_SWITCHES_INVOLUNTARY, context_switches_involuntary, 21, 3, "figures",                          \
      "context_switches_involuntary", SUM, USAGE,                                                            \
      "times that the kernel took its CPU from one, in the window")

/*
 * What the kernel counts for a tree of processes; in message ProcSample, numbers from 6 on, as counters that
 * only grow. The window's figure is that of the server's tree, the difference between the window's edges, and
 * is called server_ and the name.
 * X(NAME, name, number, since, rounds, help)
 */
#define FIGURE_TREE_LIST(X)                                                                                  \
    X(SERVER_CONTEXT_SWITCHES_VOLUNTARY, context_switches_voluntary, 6, 3, USAGE,                            \
      "times that a thread of the server's tree gave its CPU up to wait. Null when one of them ended in "    \
      "the window, since its count went with it; one that began and ended there is not seen")                \
    X(SERVER_CONTEXT_SWITCHES_INVOLUNTARY, context_switches_involuntary, 7, 3, USAGE,                        \
      "times that the kernel took its CPU from one; as above")

/*
 * What the controller works out from the counters of the hosts: real numbers, negative when unknown. Each
 * attempt has them; they do not travel.
 * X(name, since, rounds, help)
 */
#define FIGURE_WINDOW_LIST(X)                                                                                \
    X(server_cpu_s, 1, EACH, "CPU time of the server's whole tree, seconds")                                 \
    X(server_cpu_cores, 1, USAGE, "the same as CPUs in use, on average")                                     \
    X(generator_cpu_s, 1, EACH, "CPU time of the generators' load threads, seconds")                         \
    X(generator_cpu_cores, 1, USAGE, "the same as CPUs in use, on average")                                  \
    X(foreign_cpu_cores_server, 1, USAGE, "CPUs that other programs used on the server's host")              \
    X(foreign_cpu_cores_load, 1, USAGE, "the same on the load host; of several, on the worst")               \
    X(own_cpu_cores, 1, USAGE, "CPUs that agents and supervisors used, on all hosts together")

#endif
