#!/bin/sh
# A run of this machine that did not come to its end is gone on with: from its own experiment as it was stored, with what
# was measured kept; and one that this version does not understand is said to be so.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
state=$lab/state
store=$state/local/store.db

mkdir "$lab/www"
echo page >"$lab/www/page"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$lab/two.json" <<JSON
{
  "name": "two",
  "targets": [ { "name": "python", "dir": "www", "start": ["python3", "-m", "http.server", "$port", "--bind", "\${server.address}"],
                 "port": $port, "ready": { "http": "/page", "timeout": "60s" } } ],
  "workloads": [ { "name": "page", "request": { "path": "/page" }, "connections": [1, 2], "duration": "300ms" } ],
  "gates": { "errors": 1000000 }
}
JSON

# sql TEXT: on the store, which nobody has open.
sql() { sqlite3 "$store" "PRAGMA foreign_keys = ON; $1"; }
attempts() { sql 'SELECT window, attempt, id FROM attempts ORDER BY window, attempt'; }

say "a run that lost its second window"
"$bin/splitbench" run --local --state "$state" "$lab/two.json" >"$lab/run.log" 2>&1 || fail "run"
job=$(sql 'SELECT id FROM jobs')
attempts >"$lab/before"
sql "DELETE FROM attempts WHERE window = 1; UPDATE jobs SET state = 'failed', cause = 'for this test', exit_code = 3"
attempts >"$lab/kept"
[ "$(wc -l <"$lab/kept")" -lt "$(wc -l <"$lab/before")" ] || fail "nothing was taken away"

say "is gone on with"
"$bin/splitbench" resume --local --state "$state" "${job%?}" >"$lab/resume.out" 2>"$lab/resume.log" || fail "resume"
grep -q 'resumed: 1 of 2 already measured' "$lab/resume.log" || fail "it does not say what was there"
attempts >"$lab/after"
[ "$(cut -d'|' -f1 "$lab/after" | sort -u | tr '\n' ' ')" = "0 1 " ] || fail "a window is missing: $(cat "$lab/after")"
head -n "$(wc -l <"$lab/kept")" "$lab/after" | cmp -s - "$lab/kept" || fail "what was measured was measured again"

say "and read, by the beginning of its id"
for command in report status; do
    "$bin/splitbench" $command --local --state "$state" "${job%?}" >"$lab/read" || fail "$command of ${job%?}"
    grep -q "$job" "$lab/read" || fail "$command of ${job%?}: $(cat "$lab/read")"
done
status=0
"$bin/splitbench" report --local --state "$state" 3 >"$lab/read" 2>&1 || status=$?
[ "$status" -eq 2 ] && grep -q "no local job 3: " "$lab/read" || fail "report of nothing: $status, $(cat "$lab/read")"

say "another's is not"
sql "UPDATE jobs SET state = 'failed', experiment_json = '{ \"of\": \"another version\" }'"
status=0
"$bin/splitbench" resume --local --state "$state" "$job" >"$lab/other.out" 2>"$lab/other.log" || status=$?
[ "$status" -eq 2 ] || [ "$status" -eq 3 ] || fail "exit code $status"
grep -q "job $job was stored by another version" "$lab/other.log" || fail "not said"
