#!/bin/sh
# Every part is killed in mid-window, in turn; the link is cut for 2 s and for 30 s, also with a resume before the host
# is back; the controller is stopped for longer than a lease. Each time: nothing of the job lives after the lease, the
# error names the cause, the hosts are free again, and the job completes with every window present exactly once.
#   tests/e2e/faults.sh [controller|server-agent|load-agent|target|generator|cut-2s|cut-30s|cut-resumed|
#                       controller-stopped ...]
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_need_root "$@"
lab_begin
lab_hosts
lease=10

start_agent() {
    case $1 in
    server1) lab_agent server1 "$srv" pool=sut --address 10.77.0.2 ;;
    load1) lab_agent load1 "$gen" pool=loadgen ;;
    esac
    eval "$1_pid=\$spawned"
}

lab_controller
start_agent server1
start_agent load1
lab_until 10 host_connected server1 load1 || fail "the agents do not connect"

lab_nginx
cat >"$lab/faults.json" <<JSON
{
  "name": "faults",
  "roles": { "server": { "labels": { "pool": "sut" } }, "load": { "labels": { "pool": "loadgen" } } },
  "targets": [ { "name": "nginx", "dir": "$lab", "start": ["nginx", "-c", "$lab/nginx.conf", "-e", "stderr"],
                 "ready": { "http": "/small.txt", "port": 8080, "timeout": "10s" } } ],
  "workloads": [ { "name": "small", "request": { "path": "/small.txt" }, "connections": [4, 8], "warmup": "500ms",
                   "duration": "3s", "timeout": "2s" } ],
  "design": { "rounds": 2, "order": "fixed", "cooldown": "0s" },
  "gates": { "errors": 0, "retries": 3 }
}
JSON
windows=4

# Processes of a job on a host: all but the agent itself.
job_pids() {
    for pid in $(ip netns pids "$1"); do
        line=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) || continue
        case $line in
        *"splitbench-agent run"* | *"splitbench controller"* | '') ;;
        *) printf '%s ' "$pid" ;;
        esac
    done
}
no_job_pids() { [ -z "$(job_pids "$srv")$(job_pids "$gen")" ]; }

pid_of() { # pid_of SPACE WORD: the first process there whose command line holds the word
    for pid in $(ip netns pids "$1"); do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -- "$2" && { echo "$pid"; return; }
    done
    return 1
}

# On a slow machine the window may have ended by now: then it is the next one's.
kill_generator() { pid=$(pid_of "$gen" '^[^ ]*splitbench-load') && kill -9 "$pid" 2>/dev/null; }

state() { sb status "$1" --json | python3 -c "
import json, sys
j = json.load(sys.stdin)['jobs'][0]
print(j['state'], j['windows_done'], j['cause'] or '')"; }
windows_done() { state "$1" | { read -r _ n _; [ "$n" -ge "$2" ]; }; }
has_ended() { case "$(state "$1")" in queued* | running*) return 1 ;; esac; }

# A job that has stored one window and is in the middle of the next.
start_job() {
    job=$(sb run --detach "$lab/faults.json") || fail "cannot submit"
    lab_until 30 windows_done "$job" 1 || fail "the first window does not come: $(state "$job")"
    lab_until 10 pid_of "$gen" splitbench-load || fail "no generator runs"
    sleep 1.5 # past the warm-up, well inside the window of 3 s
}

expect_failed_naming() {
    lab_until $((lease + 8)) has_ended "$job" || fail "$1: the job does not end: $(state "$job")"
    now=$(state "$job")
    case $now in failed*"$2"*) ;; *) fail "$1: expected a failure naming $2, got: $now" ;; esac
    say "  $now"
}

expect_complete() {
    lab_until 60 has_ended "$job" || fail "$1: the job does not end: $(state "$job")"
    case "$(state "$job")" in done*) ;; *) fail "$1: $(state "$job")" ;; esac
    sb report "$job" --json >"$lab/report.json"
    json "$lab/report.json" "sorted(a['window'] for a in attempts if a['final'])" >"$lab/final"
    [ "$(cat "$lab/final")" = "[0, 1, 2, 3]" ] || fail "$1: windows present: $(cat "$lab/final"), not each of $windows once"
    say "  complete, every window once"
}

expect_clean() {
    lab_until $((lease + 2)) no_job_pids || fail "$1: alive after the lease: $(job_pids "$srv") / $(job_pids "$gen")"
}

resume() {
    lab_until $((lease + 10)) host_connected server1 load1 || fail "$1: the hosts are not free again: $(sb hosts --json)"
    sb resume "$job" --detach >/dev/null || fail "$1: resume is refused"
    expect_complete "$1"
}

reasons_name() {
    json "$lab/report.json" "' | '.join(a['reason'] for a in attempts if not a['valid'])" | grep -q -- "$2" ||
        fail "$1: no attempt names $2: $(json "$lab/report.json" "[a['reason'] for a in attempts]")"
}

fault() {
    say "fault: $1"
    start_job
    case $1 in
    controller)
        kill -9 "$controller_pid"
        expect_clean "$1"
        lab_controller
        now=$(state "$job")
        case $now in failed*controller*) say "  $now" ;; *) fail "$1: after the restart: $now" ;; esac
        resume "$1"
        ;;
    server-agent)
        kill -9 "$server1_pid"
        expect_clean "$1"
        expect_failed_naming "$1" server1
        start_agent server1
        resume "$1"
        ;;
    load-agent)
        kill -9 "$load1_pid"
        expect_clean "$1"
        expect_failed_naming "$1" load1
        start_agent load1
        resume "$1"
        ;;
    target)
        kill -9 "$(pid_of "$srv" 'nginx: master')"
        expect_complete "$1"
        reasons_name "$1" server1
        ;;
    generator)
        lab_until 10 kill_generator || fail "$1: no generator runs"
        expect_complete "$1"
        reasons_name "$1" load1
        ;;
    cut-2s)
        ip -n "$ctl" link set to_gen down
        sleep 2
        ip -n "$ctl" link set to_gen up
        expect_complete "$1"
        ;;
    cut-30s)
        ip -n "$ctl" link set to_gen down
        (sleep 30; ip -n "$ctl" link set to_gen up) &
        up=$!
        expect_clean "$1"
        expect_failed_naming "$1" load1
        wait "$up"
        resume "$1"
        ;;
    cut-resumed)
        # Resumed while the host is away: what it says of the run before, when it is back, ends nothing.
        ip -n "$ctl" link set to_gen down
        expect_clean "$1"
        expect_failed_naming "$1" load1
        sb resume "$job" --detach >/dev/null || fail "$1: resume is refused"
        ip -n "$ctl" link set to_gen up
        expect_complete "$1"
        ;;
    controller-stopped)
        kill -STOP "$controller_pid"
        sb status >/dev/null 2>"$lab/stopped" && fail "$1: a stopped controller answers"
        grep -q "kill -CONT $controller_pid" "$lab/stopped" || fail "$1: status says: $(cat "$lab/stopped")"
        expect_clean "$1"
        sleep 5
        kill -CONT "$controller_pid"
        expect_failed_naming "$1" "the controller stood still"
        resume "$1"
        ;;
    *) fail "unknown fault $1" ;;
    esac
    lab_until 5 no_job_pids || fail "$1: left behind: $(job_pids "$srv") / $(job_pids "$gen")"
    lab_until 5 host_connected server1 load1 || fail "$1: a host is not free"
}

for one in ${*:-controller server-agent load-agent target generator cut-2s cut-30s cut-resumed controller-stopped}; do
    fault "$one"
done
say "no orphan, no lost window"
