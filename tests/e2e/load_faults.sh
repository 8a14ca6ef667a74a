#!/bin/sh
# splitbench-load against a server that does everything right and everything wrong: each answer in its class,
# the accounts balanced and in agreement with the server's own count, the same on both back-ends.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

mkfifo "$lab/port"
"$tools/tool_faulty" >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ port _ _ <"$lab/port"
url=http://127.0.0.1:$port
count() { curl -fsS "$url/count"; }

for backend in $backends; do
    for path in ok chunked interim eof close empty; do
        before=$(count)
        check 'a["failed"] == 0 and a["ok"] + a["in_flight"] > 0' -- "$url/$path" -c 8 -t 2 -d 300ms --warmup 100ms
        seen=$(($(count) - before))
        python3 "$here/../support/load_check.py" "$lab/result.json" "r['totals']['requests_sent'] == $seen" ||
            fail "the server saw $seen requests"
    done
    check 'a["ok"] > 0 and a["failed"] == 0' -- "$url/head100" -m HEAD -c 4 -d 200ms
    check 'errors.keys() == {"receive status"} and a["ok"] == 0 and r["status"]["404"] > 0' -- "$url/none" -c 4 -d 200ms
    check 'errors.keys() == {"receive closed_early"} and r["short_bodies"] == a["failed"] > 0' -- "$url/short" -c 4 -d 200ms
    check 'errors.keys() == {"receive closed_early"} and r["short_bodies"] == a["failed"] > 0' -- "$url/shortchunk" -c 4 -d 200ms
    check 'errors.keys() == {"wait reset"}' -- "$url/reset" -c 4 -d 200ms
    check 'errors.keys() == {"wait closed_early"}' -- "$url/closed" -c 4 -d 200ms
    check 'errors.keys() == {"wait protocol"}' -- "$url/garbage" -c 4 -d 200ms
    check 'errors.keys() == {"receive desync"}' -- "$url/surplus" -c 4 -d 200ms
    check 'errors.keys() == {"wait timeout"}
           r["timeouts_ns"]["min"] >= 100e6 and r["timeouts_ns"]["count"] == a["failed"] > 4' -- "$url/hang" -c 4 -d 500ms --timeout 100ms
    check 'errors.keys() <= {"wait stale"} and a["ok"] > 0 and a["reconnects"] > 0' -- "$url/after/3" -c 4 -d 300ms
    check 'a["ok"] > 10 and a["failed"] == 0 and a["reconnects"] >= a["ok"] - 8' -- "$url/ok" -c 4 -d 200ms --no-keepalive
    check 'a["ok"] > 10 and a["failed"] == 0 and a["reconnects"] >= a["ok"] - 8' -- "$url/ok" -c 4 -d 200ms -H "Connection: close"
    check 'a["failed"] == 0 and a["reconnects"] >= a["ok"] // 10 - 4' -- "$url/ok" -c 4 -d 200ms --requests-per-connection 10
    check 'r["latency_ns"]["min"] >= 50e6 and a["in_flight"] <= 4' -- "$url/delay/50" -c 4 -d 300ms
    check 'errors.keys() == {"receive check"}' -- "$url/ok" -c 2 -d 100ms --expect-length 3
    check 'a["failed"] == 0' -- "$url/ok" -c 2 -d 100ms --expect-length 2 --expect-sha256 2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df

    # All of it at once: no request is lost or counted twice, whatever becomes of it.
    printf '%s\n' ok chunked interim eof close short shortchunk reset closed garbage surplus after/3 none ok hang >"$lab/paths"
    before=$(count)
    check 'len(errors) >= 7' -- "$url/{{line:$lab/paths}}" --template -c 20 -t 2 -d 1s --warmup 200ms --timeout 200ms
    seen=$(($(count) - before))
    # A request into a connection that the server had just closed never reached it: a stale one, or reset.
    python3 "$here/../support/load_check.py" "$lab/result.json" \
        "0 <= r['totals']['requests_sent'] - $seen <= sum(e['count'] for e in r['errors'] + r['warmup_errors'] if e['cause'] in ('stale', 'reset'))" ||
        fail "the server saw $seen requests"

    # A large request goes out whole.
    head -c 3000000 /dev/zero >"$lab/body"
    check 'a["ok"] > 0 and a["failed"] == 0 and r["bytes"]["wire_out"] >= 3000000 * a["ok"]' -- "$url/ok" -c 2 -d 500ms -b "@$lab/body"

    # In a time namespace the clock has another zero than the kernel's timers.
    if unshare -T --monotonic 1000 --boottime 1000 true 2>/dev/null; then
        timeout 20 unshare -T --monotonic 1000 --boottime 1000 "$load" -o json --backend "$backend" "$url/ok" -c 2 -d 300ms \
            --rate 200 >"$lab/result.json" || fail "$backend: no end in a time namespace"
        python3 "$here/../support/load_check.py" "$lab/result.json" 'a["ok"] > 40 and a["failed"] == 0' ||
            fail "$backend: the pace in a time namespace"
    fi

    # The drain ends in the midst of the answers: each is whole, or in flight.
    for i in 1 2 3 4 5; do
        check 'r["drain"]["carried_in"] > 0' -- "$url/ok" -c 400 -d 100ms --drain 1ms
    done

    # Nothing listens: infrastructure, not a result.
    nobody=$(free_port)
    status=0
    check 'r["warmup_errors"][0]["cause"] == "refused" and a["scheduled"] == 0' -- "http://127.0.0.1:$nobody/" -c 2 -d 100ms
    [ $status -eq 3 ] || fail "exit status $status instead of 3"
done

# A server that goes away in mid-run and comes back: failures are counted, not spun on, and load goes on.
back=$(free_port)
for backend in $backends; do
    cat >"$lab/flaky.py" <<PY
import http.server, time, socketserver
import os
mortal = False
answered = 0
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global answered
        answered += 1
        if mortal and answered > 200: os._exit(0)
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *a): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
pid = os.fork()
if pid == 0:
    mortal = True
    S(("127.0.0.1", $back), H).serve_forever()
os.waitpid(pid, 0); time.sleep(0.5)
S(("127.0.0.1", $back), H).serve_forever()
PY
    python3 "$lab/flaky.py" &
    flaky=$!
    await_port "$back"
    check 'errors.get("connect refused", 0) > 0 and errors["connect refused"] < 200
           r["timeline"][-1]["ok"] > 0 and a["reconnects"] >= 4' -- "http://127.0.0.1:$back/" -c 4 -d 3s
    kill $flaky
    wait $flaky 2>/dev/null || :
done
echo "all as expected"
