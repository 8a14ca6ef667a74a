#!/bin/sh
# Dead time per window: what passes between the end of one window and the start of the next beyond the warm-up,
# gap and drain that the experiment asks for. The aim is at most 100 ms. Prints every figure.
#   tests/bench/dead_time.sh [BUILD_BIN]
set -eu
. "$(dirname "$0")/../support/lab.sh"
if [ $# -gt 0 ]; then bin=$(cd "$1" && pwd); else lab_build; fi
lab_begin
"$bin/splitbench" run --local --quiet --json --state "$lab/state" --set design.rounds=2 --set design.cooldown=0s \
    --set design.gap=0s --set 'workloads[0].warmup=100ms' --set 'workloads[0].duration=500ms' \
    --set 'workloads[0].connections=[1,2,4,8,16,32]' "$root/docs/examples/nginx-lighttpd.json" >"$lab/report.json"
python3 - "$lab/report.json" <<'PY'
import json, statistics, sys
cells = json.load(open(sys.argv[1]))["cells"]
ms = [a["dead_ns"] / 1e6 for c in cells for a in c["attempts"] if a["dead_ns"]]
print("dead time of each window, ms:", " ".join(f"{v:.1f}" for v in ms))
print(f"n {len(ms)}  median {statistics.median(ms):.1f} ms  max {max(ms):.1f} ms  (aim: at most 100 ms)")
PY
