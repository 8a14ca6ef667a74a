#!/bin/sh
# A store that an older splitbench wrote (old_store/schema-1.sql, and the same as schema 2 had it): its reports can be
# read without changing the file, where nothing may be written too; the first program that writes brings it up, to
# exactly what a new store is, and no reference in it is broken.
#   old_store.sh [SCHEMA]   of this schema only (default: of each)
set -eu
. "$(dirname "$0")/../support/lab.sh"
if [ $# -eq 0 ]; then
    for schema in 1 2; do
        echo "schema $schema"
        "$0" $schema
    done
    exit
fi
lab_begin
state=$lab/state
store=$state/local/store.db
old=20261201-002156-c879
mkdir -p "$state/local"
sqlite3 "$store" <"$root/tests/e2e/old_store/schema-1.sql"
if [ "$1" -ge 2 ]; then
    sqlite3 "$store" "ALTER TABLE hosts ADD COLUMN libraries TEXT NOT NULL DEFAULT ''; PRAGMA user_version = 2"
fi

local_report() { "$bin/splitbench" report --local --state "$state" "$@"; }
version() { sqlite3 -readonly "$store" 'PRAGMA user_version'; }

# old_report NAME: the old job's report is whole, and says what nobody knew then.
old_report() {
    local_report "$old" >"$lab/$1.txt" 2>"$lab/$1.log" || fail "$1: no report"
    grep -q '^libraries   server, load: unknown, the agent did not say$' "$lab/$1.txt" || fail "$1: $(cat "$lab/$1.txt")"
    grep -q '1\.003k' "$lab/$1.txt" || fail "$1: the figure is not there: $(cat "$lab/$1.txt")"
}

say "read as it lies"
old_report first
local_report --json "$old" >"$lab/first.json" || fail "no JSON"
[ "$(json "$lab/first.json" "[h['libraries'] for h in j['hosts']]")" = '[None, None]' ] || fail "JSON: libraries"
[ "$(version)" = "$1" ] || fail "reading changed the file"

say "read where nothing may be written"
chmod a-w "$state/local" "$store"
if [ "$(id -u)" -eq 0 ]; then
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount sh -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"' sh "$state" \
        "$bin/splitbench" report --local --state "$state" "$old" >"$lab/sealed.txt" || fail "no report on a sealed disk"
else
    local_report "$old" >"$lab/sealed.txt" || fail "no report in a sealed directory"
fi
chmod u+w "$state/local" "$store"
cmp -s "$lab/first.txt" "$lab/sealed.txt" || fail "another report: $(diff "$lab/first.txt" "$lab/sealed.txt")"

say "brought up by the first run that writes"
mkdir "$lab/www"
echo page >"$lab/www/page"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$lab/new.json" <<JSON
{
  "name": "new",
  "targets": [ { "name": "python", "dir": "www", "start": ["python3", "-m", "http.server", "$port", "--bind", "\${server.address}"],
                 "port": $port, "ready": { "http": "/page", "timeout": "60s" } } ],
  "workloads": [ { "name": "page", "request": { "path": "/page" }, "connections": 1, "duration": "300ms" } ],
  "gates": { "errors": 1000000 }
}
JSON
"$bin/splitbench" run --local --state "$state" "$lab/new.json" >"$lab/run.log" 2>&1 || fail "run"
[ "$(version)" -gt "$1" ] || fail "the file is not brought up"
old_report second
cmp -s "$lab/first.txt" "$lab/second.txt" || fail "the old job's report changed: $(diff "$lab/first.txt" "$lab/second.txt")"
[ -z "$(sqlite3 -readonly "$store" 'PRAGMA foreign_key_check')" ] || fail "broken references"
local_report --json "$old" >"$lab/second.json"
cmp -s "$lab/first.json" "$lab/second.json" || fail "JSON: $(diff "$lab/first.json" "$lab/second.json")"
local_report --json >"$lab/new.report.json"
[ "$(json "$lab/new.report.json" "all('nng ' in h['libraries'] and 'OpenSSL 3.' in h['libraries'] for h in j['hosts'])")" = True ] ||
    fail "the new job does not say its libraries"

say "the same tables as a new store's"
"$bin/splitbench" run --local --state "$lab/fresh" "$lab/new.json" >"$lab/fresh.log" 2>&1 || fail "run in a fresh place"
columns() {
    sqlite3 -readonly "$1" "SELECT t.name, c.* FROM sqlite_schema t, pragma_table_info(t.name) c ORDER BY 1, 2;
        PRAGMA user_version; PRAGMA integrity_check"
}
columns "$store" >"$lab/old.columns"
columns "$lab/fresh/local/store.db" >"$lab/new.columns"
grep -q libraries "$lab/new.columns" || fail "no columns at all"
cmp -s "$lab/old.columns" "$lab/new.columns" || fail "the tables differ: $(diff "$lab/old.columns" "$lab/new.columns")"
