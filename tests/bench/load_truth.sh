#!/bin/sh
# Are the latencies of splitbench-load true? Against a server that answers after a constant time, and one that
# stands still for 500 ms every 2 s (coordinated omission): figures beside the truth. Exit status 1 when one
# is off. Real-time scheduling, where allowed, keeps other work on the machine out of the picture.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_build build/tests/tool_faulty
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

realtime=
chrt -f 1 true 2>/dev/null && realtime="chrt -f 1"
echo "truth of latencies${realtime:+ (under $realtime)}"
off=0

mkfifo "$lab/port"
$realtime "$tools/tool_faulty" >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ port _ _ <"$lab/port"
for backend in $backends; do
    $realtime "$load" "http://127.0.0.1:$port/delay/100" -c 10 -d 5s -o json --backend "$backend" >"$lab/result.json"
    python3 - "$lab/result.json" <<'PY' || off=1
import json, sys
r = json.load(open(sys.argv[1]))
names = ("min", "p50", "p75", "p90", "p95", "p99", "max")
print(f"  constant 100 ms, {r['backend']:9}", " ".join(f"{n} {r['latency_ns'][n] / 1e6:.3f}" for n in names))
sys.exit(any(abs(r["latency_ns"][n] - 100e6) > 0.5e6 for n in names[:-1]))
PY
done

$realtime "$tools/tool_faulty" --stall 500 2000 >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ port _ base <"$lab/port"
for backend in $backends; do
    echo "  500 ms of every 2 s, 500 requests/s over 10 connections, $backend"
    $realtime "$load" "http://127.0.0.1:$port/ok" -c 10 -R 500 -d 20s -o json --backend "$backend" >"$lab/result.json"
    python3 "$here/load_truth.py" "$lab/result.json" "$base" 500 2000 || off=1
done
exit $off
