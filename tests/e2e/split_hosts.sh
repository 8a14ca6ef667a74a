#!/bin/sh
# A split run over three hosts with mutual TLS: the generator's account of requests must equal nginx's own
# counter, to the request.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_need_root "$@"
lab_begin
lab_hosts
lab_controller
lab_agent server1 "$srv" pool=sut --address 10.77.0.2
lab_agent load1 "$gen" pool=loadgen
lab_until 10 host_connected server1 load1 || fail "the agents do not connect"

cat >"$lab/split.json" <<JSON
{
  "name": "split-hosts",
  "roles": { "server": { "labels": { "pool": "sut" } }, "load": { "labels": { "pool": "loadgen" } } },
  "targets": [
    { "name": "nginx", "dir": "$lab",
      "start": ["$root/tests/support/nginx_counted.sh", "$lab/count", "10.77.0.2", "8080"],
      "ready": { "tcp": 8080, "timeout": "10s" } }
  ],
  "checks": [ { "name": "small", "request": { "path": "/small.txt" }, "expect": { "status": 200, "body_bytes": 1000 } } ],
  "workloads": [
    { "name": "small", "request": { "path": "/small.txt" }, "connections": [1, 64], "warmup": "1s", "duration": "3s",
      "expect": { "body_bytes": 1000 } }
  ],
  "design": { "rounds": 2, "order": "fixed", "cooldown": "0s" }
}
JSON
sb run "$lab/split.json" || fail "the run failed with exit code $?"
sb report --json >"$lab/report.json"

sent=$(json "$lab/report.json" "sum(a['result']['requests_sent'] for a in attempts)")
checks=2 # one check, two rounds
counted=$(awk '{ n += $1 } END { print n }' "$lab/count")
say "generator: $sent sent and $checks checks; nginx counted $counted"
[ "$sent" -gt 1000 ] || fail "hardly any load"
[ "$((sent + checks))" -eq "$counted" ] || fail "the accounts differ"

balanced=$(json "$lab/report.json" "all(w['scheduled'] == w['ok'] + w['failed'] + w['in_flight'] + w['never_sent']
    for w in (a['result']['window'] for a in attempts))")
[ "$balanced" = True ] || fail "an attempt's accounts do not balance"
# Counted by the kernel on both sides of every window: nginx and the generator sleep, so they are never zero.
switches=$(json "$lab/report.json" "all(0 < a['result']['context_switches_voluntary'] and 0 < a['server_context_switches_voluntary']
    and 0 <= a['result']['context_switches_involuntary'] and 0 <= a['server_context_switches_involuntary'] for a in attempts)")
[ "$switches" = True ] || fail "context switches: $(cat "$lab/report.json")"
[ "$(json "$lab/report.json" "all(c['server_context_switches_voluntary']['n'] == 2 for c in j['cells'])")" = True ] ||
    fail "context switches over rounds"
# Three hosts by address, one machine by its boot id: the report must not call that split over hosts.
[ "$(json "$lab/report.json" "j['placements']")" = "['split-cpus']" ] || fail "the placement is not told truly"
say "split over three hosts, accounts agree to the request"
