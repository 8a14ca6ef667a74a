"""Compares a result of splitbench-load against a stalling server with what the schedule and the stalls say.

usage: load_truth.py RESULT.json BASE_NS STALL_MS PERIOD_MS
A request that is due while the server stands still cannot be answered before it goes on; any other is
answered at once. Prints each percentile, and fails when one is off by more than 2 % and more than 1 ms.
"""
import json
import math
import sys

result = json.load(open(sys.argv[1]))
base, stall, period = int(sys.argv[2]), int(sys.argv[3]) * 10**6, int(sys.argv[4]) * 10**6
start, end = int(result["window"]["start_ns"]), int(result["window"]["end_ns"])
rate = result["open_loop"]["planned"] / ((end - start) / 1e9)

truth = []
for i in range(int(result["open_loop"]["planned"])):
    due = start + int(i * 1e9 / rate)
    into = (due - base) % period
    wait = stall - into if into < stall else 0
    if due + wait <= end:  # what is still open at the end of the window is in flight, not a sample
        truth.append(wait)
truth.sort()

bad = 0
for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("p99_9", 99.9)):
    true = truth[max(math.ceil(len(truth) * percent / 100) - 1, 0)]
    seen = result["latency_ns"][name]
    off = abs(seen - true)
    ok = off <= 1e6 or off <= true * 0.02
    bad += not ok
    print(f"  {name:6} true {true / 1e6:9.3f} ms   measured {seen / 1e6:9.3f} ms   {'ok' if ok else 'OFF'}")
print(f"  samples {result['latency_ns']['count']}, expected {len(truth)}; accounts", result["accounts"])
sys.exit(1 if bad or not result["accounts"]["balanced"] else 0)
