"""Checks a result of splitbench-load: the accounts, and what the test expects.

usage: load_check.py RESULT.json [--books FILE.json] [EXPRESSION]...      exit status: 0, 1 failed, 2 try again
Every expression is Python over the result `r`, its accounts `a`, `errors`: a map of "phase cause" to count, and
`samples`: a map of "phase cause" to the first text, of the time before the window too. `n` are the server's books.
"""
import json
import sys

with open(sys.argv[1]) as f:
    r = json.load(f)
n, expressions = None, sys.argv[2:]
if expressions[:1] == ["--books"]:
    with open(expressions[1]) as f:
        n = json.load(f)
    expressions = expressions[2:]
a = r["accounts"]
errors = {e["phase"] + " " + e["cause"]: e["count"] for e in r["errors"]}
samples = {e["phase"] + " " + e["cause"]: e["sample"] for e in r["errors"] + r["warmup_errors"]}


def balanced(x):
    return x["balanced"] and x["scheduled"] == x["ok"] + x["failed"] + x["in_flight"] + x["never_sent"]


always = {
    "the format is known": r["format"] == "splitbench-load/1",
    "the window balances": balanced(a),
    "the time before it balances": balanced(r["warmup"]),
    "the drain balances": balanced(r["drain"]),
    "what was in flight went into the drain": r["drain"]["carried_in"] == a["in_flight"],
    "what was in flight went into the window": a["carried_in"] == r["warmup"]["in_flight"],
    "errors add up to failures": sum(errors.values()) == a["failed"],
    "failures are not in the latencies": r["latency_ns"]["count"] == a["ok"],
    "statuses add up to answers": sum(r["status"].values()) == a["responses"],
    "the time line adds up": sum(p["ok"] for p in r["timeline"]) == a["ok"]
    and sum(p["failed"] for p in r["timeline"]) == a["failed"],
    "requests add up": sum(q["ok"] for q in r["requests"]) == a["ok"],
}


def holds(expression):
    """One that asks for a figure that is not there does not hold."""
    try:
        return eval(expression, {"r": r, "a": a, "n": n, "errors": errors, "samples": samples})
    except (KeyError, IndexError):
        return False


bad = [what for what, good in always.items() if not good]
bad += [e for e in expressions if not holds(e)]
for what in bad:
    print(f"FAILED: {what}", file=sys.stderr)
if bad:
    print(json.dumps({"books": n}), file=sys.stderr)
    print(json.dumps({k: v for k, v in r.items() if not k.endswith("hist")}, indent=1), file=sys.stderr)
# 2: only expectations failed, and not one answer came or we were not run in time: that means nothing yet.
STARVED_NS = 20_000_000
starved = all(always.values()) and (a["responses"] == 0 or r["loop_lag_ns"].get("max", 0) > STARVED_NS)
sys.exit((2 if starved else 1) if bad else 0)
