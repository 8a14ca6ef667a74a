#!/bin/sh
# What an idle agent costs: CPU ticks over a minute and resident memory, connected over TLS to a controller that
# has nothing for it. Limits: 0.2 % of a core, 15 MB.
#   tests/bench/agent_idle.sh [SECONDS]
set -eu
. "$(dirname "$0")/../support/lab.sh"
seconds=${1:-60}
port=$((20000 + $$ % 10000))
lab_build
lab_begin

"$bin/splitbench" controller init --state "$lab/state" >"$lab/init.log"
lab_spawn controller "$bin/splitbench" controller --state "$lab/state" --listen "tls+tcp://127.0.0.1:$port"
lab_until 10 sb status || fail "the controller does not answer"
token=$(sb token agent)
"$bin/splitbench-agent" enroll "127.0.0.1:$port" "$token" --name idle --identity "$lab/id" >"$lab/enroll.log"
lab_spawn agent "$bin/splitbench-agent" run --controller "127.0.0.1:$port" --identity "$lab/id" --state "$lab/agent"
agent=$spawned
lab_until 10 host_connected idle || fail "the agent does not connect"
sleep 2 # the start is over

ticks() { sed 's/.*) //' "/proc/$agent/stat" | cut -d' ' -f12,13 | tr ' ' '+'; }
status() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$agent/$2"; } # status's VmRSS is only roughly kept
before=$(($(ticks)))
switches=$(cat "/proc/$agent"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }')
sleep "$seconds"
used=$(($(ticks) - before))
switches=$(($(cat "/proc/$agent"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }') - switches))
hz=$(getconf CLK_TCK)
awk -v used="$used" -v hz="$hz" -v s="$seconds" -v rss="$(status Rss smaps_rollup)" -v threads="$(status Threads status)" \
    -v switches="$switches" 'BEGIN {
    printf "seconds %d\ncpu_ticks %d (of %d a second)\ncpu_percent_of_a_core %.3f\n", s, used, hz, 100 * used / hz / s
    printf "rss_kib %d\nthreads %d\ncontext_switches_per_s %.1f\n", rss, threads, switches / s
    exit !(100 * used / hz / s <= 0.2 && rss * 1024 <= 15e6)
}' || fail "over 0.2 % of a core or 15 MB"
