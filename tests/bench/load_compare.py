"""The measuring part of load_compare.sh.

usage: load_compare.py cpu|backends|threads PROGRAM URL CONNECTIONS SECONDS PAIRS [TOOL]...
       load_compare.py https PROGRAM URL CONNECTIONS SECONDS PAIRS keep|close [OPTION OF OURS]...
       load_compare.py handshake_threads PROGRAM URL CONNECTIONS SECONDS PAIRS [OPTION OF OURS]...
       load_compare.py pacing RESULT.json
"""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys


def number(pattern, text):
    m = re.search(pattern, text)
    return int(m.group(1)) if m else None


# name: (arguments for url, connections, seconds; how many good answers it says there were)
TOOLS = {
    "wrk": (lambda u, c, s: ["wrk", "-t1", f"-c{c}", f"-d{s}s", u], lambda o: number(r"(\d+) requests in", o)),
    "h2load": (lambda u, c, s: ["h2load", "--h1", "-t1", f"-c{c}", f"-D{s}", u], lambda o: number(r"(\d+) succeeded", o)),
    "ab": (lambda u, c, s: ["ab", "-k", "-q", f"-c{c}", f"-t{s}", "-n3000000", u],
           lambda o: number(r"Complete requests:\s+(\d+)", o)),
    "bombardier": (lambda u, c, s: ["bombardier", f"-c{c}", f"-d{s}s", "-p", "r", "-o", "json", u],
                   lambda o: json.loads(o)["result"]["req2xx"]),
    "hey": (lambda u, c, s: ["hey", "-z", f"{s}s", "-c", str(c), u], lambda o: number(r"\[200\]\s+(\d+) responses", o)),
    "vegeta": (lambda u, c, s: ["sh", "-c", f"echo 'GET {u}' | vegeta attack -rate 0 -max-workers {c} -max-body 0"
                                f" -duration {s}s | vegeta report -type json"],
               lambda o: json.loads(o)["requests"]),
    "oha": (lambda u, c, s: ["oha", "-z", f"{s}s", "-c", str(c), "--no-tui", "--output-format", "json", u],
            lambda o: sum(json.loads(o)["statusCodeDistribution"].values())),
    "autocannon": (lambda u, c, s: ["autocannon", "-c", str(c), "-d", str(s), "-j", u], lambda o: json.loads(o)["2xx"]),
}


def usage():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime, r.ru_stime


def run(command, count, cpus="1"):
    """CPU microseconds a request: all, and user alone."""
    u0, s0 = usage()
    pinned = (["taskset", "-c", cpus] if cpus else []) + command
    out = subprocess.run(pinned, capture_output=True, text=True).stdout
    u1, s1 = usage()
    try:
        n = count(out)
    except (ValueError, KeyError):
        n = None
    if not n:
        return None
    return (u1 - u0 + s1 - s0) / n * 1e6, (u1 - u0) / n * 1e6


def ours(program, url, c, s, *more):
    return ([program, url, "-c", str(c), "-d", f"{s}s", "-o", "json", *more],
            lambda o: json.loads(o)["totals"]["responses"])


def line(name, ours_all, theirs_all, ratios):
    print(f"  {name:22} {statistics.median(theirs_all):7.2f} us/request, ours {statistics.median(ours_all):6.2f};"
          f" ours does {statistics.median(ratios):5.2f} x its requests per CPU-second"
          f" (pairs {min(ratios):.2f} to {max(ratios):.2f})")


def compare(name, mine, theirs, pairs):
    ours_all, theirs_all, ratios = [], [], []
    for i in range(pairs):
        order = [(mine, ours_all), (theirs, theirs_all)]
        for what, results in order if i % 2 == 0 else reversed(order):
            r = run(*what)
            if r is None:
                print(f"  {name:22} gave no result")
                return
            results.append(r[0])
        ratios.append(theirs_all[-1] / ours_all[-1])
    line(name, ours_all, theirs_all, ratios)


def wrk(u, c, s, threads=1, close=False):
    return (["wrk", f"-t{threads}", f"-c{c}", f"-d{s}s", *(["-H", "Connection: close"] if close else []), u], TOOLS["wrk"][1])


def https(program, u, c, s, pairs, kind, more):
    close = kind == "close"
    name = "wrk, " + ("kept" if not close else "resumed" if "--tls-resume" in more else "full")
    print(f"\n{c} connections, {u.rsplit('/', 1)[1]}, {pairs} alternating pairs of {s} s, medians")
    compare(name, ours(program, u, c, s, *(["--no-keepalive"] if close else []), *more), wrk(u, c, s, close=close), pairs)


def handshake_threads(program, u, c, s, pairs, more):
    """Each tool against itself with one thread, and the two against each other, in turn within a pair."""
    counts = (1, 2, 8)
    cost = {(tool, t): [] for tool in ("ours", "wrk") for t in counts}
    for _ in range(pairs):
        for t in counts:
            for tool, what in (("ours", ours(program, u, c, s, "--no-keepalive", "-t", str(t), *more)), ("wrk", wrk(u, c, s, t, True))):
                r = run(*what, cpus=None)
                if r is None:
                    print(f"  {tool} gave no result with {t} threads")
                    return
                cost[tool, t].append(r[0])
    for tool in ("ours", "wrk"):
        for t in counts:
            against_one = statistics.median(x / y for x, y in zip(cost[tool, t], cost[tool, 1]))
            print(f"  {tool:5} {t} threads {statistics.median(cost[tool, t]):7.1f} us a hand-shake and request"
                  f" ({min(cost[tool, t]):.1f} to {max(cost[tool, t]):.1f}), {against_one:.2f} x that of one thread")
    for t in counts:
        ratios = [x / y for x, y in zip(cost["wrk", t], cost["ours", t])]
        print(f"  {t} threads: ours does {statistics.median(ratios):.2f} x wrk's per CPU-second (pairs {min(ratios):.2f} to {max(ratios):.2f})")


def main():
    kind = sys.argv[1]
    if kind == "pacing":
        r = json.load(open(sys.argv[2]))
        o = r["open_loop"]
        seconds = (int(r["window"]["end_ns"]) - int(r["window"]["start_ns"])) / 1e9
        planned, got = o["planned"] / seconds, r["accounts"]["sent"] / seconds
        print(f"  {planned:6.0f}/s {r['backend']:9} sent {got:9.2f}/s ({(got / planned - 1) * 100:+.3f} %), gap CV {o['gap_cv']:.3f},"
              f" own lag 50 % {o['own_lag_ns']['p50'] / 1e3:.1f} us, 99 % {o['own_lag_ns']['p99'] / 1e3:.1f} us, {o['late']} late")
        return
    program, url = sys.argv[2], sys.argv[3]
    c, s, pairs = int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
    if kind == "https":
        https(program, url, c, s, pairs, sys.argv[7], sys.argv[8:])
    elif kind == "handshake_threads":
        handshake_threads(program, url, c, s, pairs, sys.argv[7:])
    elif kind == "backends":
        compare("libuv", ours(program, url, c, s, "--backend", "io_uring"), ours(program, url, c, s, "--backend", "libuv"), pairs)
    elif kind == "threads":
        rates = []
        for _ in range(pairs):
            pair = []
            for t, cpus in ((1, "2"), (2, "2,3")):
                out = subprocess.run([program, url, "-c", str(c), "-t", str(t), "-d", f"{s}s", "--cpus", cpus, "-o", "json"],
                                     capture_output=True, text=True).stdout
                pair.append(json.loads(out)["rate"]["ok_per_s"])
            rates.append(pair[1] / pair[0])
        print(f"two threads do {statistics.median(rates):.2f} x the requests of one")
    else:
        print(f"\n{c} connections, {url.rsplit('/', 1)[1]}, {pairs} alternating pairs of {s} s, medians")
        for tool in sys.argv[7:] or TOOLS:
            if shutil.which(tool) is None:
                print(f"  {tool:22} is not installed")
                continue
            arguments, count = TOOLS[tool]
            compare(tool, ours(program, url, c, s), (arguments(url, c, s), count), pairs)
    sys.stdout.flush()


os.environ.setdefault("GOMAXPROCS", "1")
main()
