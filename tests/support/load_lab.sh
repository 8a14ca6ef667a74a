# For end-to-end tests of splitbench-load: runs it on each back-end and checks the result. Sourced, after
# tests/support/lab.sh and lab_begin.
# shellcheck shell=sh disable=SC2154

load=$bin/splitbench-load
books=
backends=libuv
"$load" --calibrate -o json -c 1 --backend io_uring >/dev/null 2>&1 && backends="libuv io_uring"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# check EXPRESSIONS -- ARGUMENTS...: one run on $backend; the expressions are one a line (load_check.py).
# The result stays in $lab/result.json. A script may set `books` to a file and define write_books, which writes
# the server's own figures to it after each run. A window in which the machine gave us no time at all is tried again.
check() {
    expressions=$1
    shift 2
    for attempt in 1 2 3 4 5 6; do
        "$load" -o json --backend "$backend" "$@" >"$lab/result.json" 2>"$lab/stderr" || status=$?
        [ -s "$lab/result.json" ] || fail "no result of: $* ($(cat "$lab/stderr"))"
        [ -z "$books" ] || write_books
        verdict=0
        check_result || verdict=$?
        [ $verdict -eq 2 ] || break
        echo "attempt $attempt: the machine gave us no time"
    done
    [ $verdict -eq 0 ] || fail "$backend: $*"
    echo "ok: $backend: $*"
}

check_result() {
    set --
    [ -z "$books" ] || set -- --books "$books"
    set -f
    old_ifs=$IFS
    IFS='
'
    # shellcheck disable=SC2086  # one expression a line
    python3 "$here/../support/load_check.py" "$lab/result.json" "$@" $expressions
    checked=$?
    IFS=$old_ifs
    set +f
    return $checked
}

# await_port PORT: until something listens there.
await_port() {
    tries=0
    until python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "nothing listens on port $1"
        sleep 0.05
    done
}

# free_port: prints a port that nothing uses.
free_port() {
    python3 -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"
}

# start COMMAND...: in the background, ended with the script.
start() {
    "$@" >>"$lab/servers.log" 2>&1 &
    lab_pids="$lab_pids $!"
}
