#ifndef CONTROLLER_VIEW_HOSTS_H
#define CONTROLLER_VIEW_HOSTS_H
/*
 * The agents that the controller knows, as JSON: what the HOSTS request answers and what `splitbench hosts`
 * prints. The fleet's thread.
 */
#include "common/buf.h"
#include "controller/fleet/fleet.h"

/* {"format":"splitbench-hosts/1","hosts":[{"name","connected","state","job","address","hostname","boot_id",
 * "cpu_model","cpus","memory_bytes","kernel","os","build","libraries","labels":{}}]}, by name; null for what
 * is not known. ERR_TOO_BIG when `out` cannot hold it. */
NODISCARD enum err hosts_write_json(const struct fleet *f, struct buf *out);

#endif
