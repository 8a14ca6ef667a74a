#!/bin/sh
# splitbench-load as a program: exit codes and messages, events, an early end, a common start, several rates, what it
# writes where.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

mkfifo "$lab/port"
"$tools/tool_faulty" >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ port _ _ <"$lab/port"
url=http://127.0.0.1:$port

# refused STATUS WORDS ARGUMENTS...: fails so, says so on standard error, prints no result.
refused() {
    wanted=$1
    words=$2
    shift 2
    status=0
    "$load" "$@" >"$lab/out" 2>"$lab/err" || status=$?
    [ $status -eq "$wanted" ] || fail "$*: exit status $status instead of $wanted"
    grep -qF -- "$words" "$lab/err" || fail "$*: '$words' is not in: $(cat "$lab/err")"
    [ ! -s "$lab/out" ] || fail "$*: prints a result"
    echo "ok: refused: $*"
}
refused 2 "exactly one URL"
refused 2 "http:// or https://" ftp://x/
refused 2 "did you mean --connections" "$url" --conections 3
refused 2 "--rate and --stages" "$url" -R 5 --stages 1s:5
refused 2 "cannot share" "$url" -c 1 -t 2
refused 2 "like 10s" "$url" -d 10
refused 2 "the length follows" "$url" -H "Content-Length: 3"
refused 2 "cannot read" "$url" --requests /nonexistent
refused 2 "for https://" "$url" --insecure
refused 2 "CA" "https://127.0.0.1:$port/" --ca /nonexistent.pem
refused 3 "cannot be resolved" http://no-such-name.invalid/
refused 2 "more than an hour" "$url" --start-at 18446744073709551615 -c 1
refused 3 "had passed" "$url/ok" --start-at 1 -c 1
refused 3 "can be used here" "$url/ok" --cpus 0,1023 -c 1
refused 3 "cannot write" "$url/ok" --hlog /nonexistent/x -c 1
"$load" --help | grep -q -- --stages || fail "--help does not list the options"
"$load" --version | grep -qx 'splitbench-load [0-9.]*' || fail "--version"
libraries=$("$load" --version | sed -n '2,$s/^  //p' | paste -s -d, | sed 's/,/, /g')

status=0
"$load" "$url/none" -c 1 -d 100ms >"$lab/out" || status=$?
[ $status -eq 1 ] || fail "nothing succeeded, and the exit status is $status"
grep -q "status 404" "$lab/out" || fail "the text does not name the failure"

for backend in $backends; do
    # Events: every line is JSON, the edges are those of the result, progress comes once a second.
    check "a['ok'] > 0
r['libraries'] == '$libraries'" -- "$url/ok" -c 2 -d 2500ms --warmup 200ms --events
    python3 - "$lab/stderr" "$lab/result.json" <<'PY' || fail "events"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
result = json.load(open(sys.argv[2]))
names = [e["event"] for e in events]
assert names == ["warmup_start", "window_start", "progress", "progress", "window_end"], names
edges = {e["event"]: int(e["t_ns"]) for e in events}
assert edges["window_start"] == int(result["window"]["start_ns"]) == edges["warmup_start"] + 200_000_000
assert edges["window_end"] == int(result["window"]["end_ns"]) == edges["window_start"] + 2_500_000_000
done = [e["ok"] + e["failed"] for e in events if e["event"] == "progress"]
assert 0 <= done[0] <= done[1] <= result["accounts"]["ok"]
PY

    # An early end, in the window and before it: a shorter window, a whole report.
    for ramp in 0 60s; do
        "$load" "$url/ok" -c 4 -d 60s --ramp $ramp -o json --backend "$backend" >"$lab/result.json" &
        pid=$!
        sleep 1
        kill -INT $pid
        status=0
        wait $pid || status=$?
        python3 "$here/../support/load_check.py" "$lab/result.json" 'r["interrupted"]' \
            'int(r["window"]["end_ns"]) - int(r["window"]["start_ns"]) < 30e9' || fail "interrupted, --ramp $ramp"
    done

    # Two generators begin at the same instant.
    at=$(python3 -c 'import time; print(time.monotonic_ns() + 1_500_000_000)')
    "$load" "$url/ok" -c 2 -d 300ms --start-at "$at" -o json --backend "$backend" >"$lab/one.json" &
    pid=$!
    check "int(r['window']['start_ns']) == $at" -- "$url/ok" -c 2 -d 300ms --start-at "$at"
    wait $pid
    python3 "$here/../support/load_check.py" "$lab/one.json" "int(r['window']['start_ns']) == $at" || fail "--start-at"

    # Schedules: as many requests as planned, in the right intervals.
    check 'a["scheduled"] == 100 + 200 + 150
           [p["ok"] + p["failed"] > 0 for p in r["timeline"]] == [True] * 4
           r["open_loop"]["planned"] == 450 and r["mode"] == "open"' -- "$url/ok" -c 20 -t 2 --stages 1s:100,2s:50-150,1s:150
    check '60 < a["scheduled"] < 140' -- "$url/ok" -c 10 -R 100 -d 1s --arrivals poisson --seed 3
    # One connection that answers after 50 ms cannot carry 100 a second: the rest waits, and is accounted for.
    check 'a["scheduled"] == 100 and a["never_sent"] > 60 and a["in_flight"] <= 1
           r["latency_ns"]["max"] > 400e6 and r["open_loop"]["service_ns"]["max"] < 400e6' -- "$url/delay/50" -c 1 -R 100 -d 1s

    # Weighted requests come in their proportions.
    cat >"$lab/requests.json" <<'JSON'
[ { "name": "a", "weight": 3, "path": "/ok" },
  { "name": "b", "path": "/none", "expect": { "status": 404, "body_bytes": 0 } } ]
JSON
    check 'a["failed"] == 0 and a["ok"] > 0
           abs(r["requests"][0]["ok"] - 3 * r["requests"][1]["ok"]) <= 12' -- "$url/" -c 3 -d 300ms --requests "$lab/requests.json"

    # A line per interval, a log of histograms.
    check 'len(r["timeline"]) == 5 and r["interval_ns"] == 100000000' -- "$url/ok" -c 2 -d 500ms --report-every 100ms --hlog "$lab/x.hlog"
    [ "$(wc -l <"$lab/stderr")" -eq 5 ] || fail "--report-every: $(cat "$lab/stderr")"
    [ "$(grep -c HISTFAAA "$lab/x.hlog")" -eq 5 ] || fail "--hlog"

    check 'r["calibration"]["one_connection"]["min_ns"] > 0 and r["calibration"]["all_connections"]["connections"] == 5' -- \
        "$url/ok" -c 5 -d 100ms --calibrate
done
"$load" --calibrate -c 2 | grep -q "null server" || fail "--calibrate without a URL"

# A fleet of connections far beyond the threads' share stays exact.
backend=libuv
check 'a["failed"] == 0 and a["in_flight"] <= 999' -- "$url/ok" -c 999 -t 7 -d 500ms
echo "all as expected"
