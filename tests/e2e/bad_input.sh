#!/bin/sh
# What people get wrong: experiment files, options, and things that fail while an experiment runs. Each is
# refused with its place or its cause, and with its exit code.
set -u
cd "$(dirname "$0")/../.." || exit 2
sb=$SPLITBENCH_BIN/splitbench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=tests/e2e/bad_input
failed=0
tried=0

wrong() {
    failed=$((failed + 1))
    printf 'FAIL: %s\n' "$*" >&2
    sed 's/^/    /' "$work/err" >&2
}

# ---- experiment files: the .json files of tests/e2e/bad_input, and in `expected` all that is said about each ---------
tab=$(printf '\t')
for file in "$bad"/*.json; do
    name=$(basename "$file" .json)
    tried=$((tried + 1))
    "$sb" plan "$file" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || wrong "$name: exit code $code, not 2"
    [ ! -s "$work/out" ] || wrong "$name: something on standard output"
    grep "^$name$tab" "$bad/expected" >"$work/expected" || wrong "$name: nothing is expected of it"
    wanted=$(wc -l <"$work/expected")
    said=$(grep -c "^$file:[0-9]*:[0-9]*: " "$work/err")
    [ "$said" -eq "$wanted" ] || wrong "$name: $said problems, not $wanted"
    while IFS="$tab" read -r _ place text; do
        start=${text%%...*}
        end=${text#"$start"}
        grep -F -- "$file:$place: $start" "$work/err" | grep -qF -- "${end#...}" || wrong "$name: not said: $place: $text"
    done <"$work/expected"
done
[ "$tried" -ge 40 ] || wrong "only $tried broken files"
for name in $(cut -f 1 "$bad/expected" | grep -v '^#' | sort -u); do
    [ -e "$bad/$name.json" ] || wrong "$name: expected, but there is no such file"
done
echo "$tried broken experiment files"

# ---- command lines ------------------------------------------------------------------------------------------
# refuses CODE TEXT ARGUMENTS...: that exit code, and the text on standard error.
refuses() {
    code=$1
    text=$2
    shift 2
    tried=$((tried + 1))
    timeout 60 "$sb" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ "$got" -eq "$code" ] || wrong "splitbench $*: exit code $got, not $code"
    grep -qF -- "$text" "$work/err" || wrong "splitbench $*: not said: $text"
}

good=docs/examples/nginx-lighttpd.json
tried=0
refuses 2 "name a command"
refuses 2 "unknown command 'plam'; did you mean 'plan'?" plam "$good"
refuses 2 "unknown option --jsn; did you mean --json?" plan --jsn "$good"
refuses 2 "option --set needs a value" plan "$good" --set
refuses 2 "plan: name one experiment file" plan
refuses 2 "is too much; see --help" plan "$good" "$good"
refuses 2 "$work/none.json: No such file or directory" plan "$work/none.json"
refuses 2 "$work: is a directory; name the experiment file in it" plan "$work"
cat >"$work/openssl.cnf" <<EOF
openssl_conf = init
[init]
providers = list
[list]
legacy = legacy
[legacy]
activate = 1
EOF
export OPENSSL_CONF="$work/openssl.cnf"
refuses 3 "OpenSSL has no SHA-256 here: its configuration, $work/openssl.cnf, leaves out the default provider" plan "$good"
refuses 3 "or let OPENSSL_CONF name another file" controller --state "$work/no-hash"
unset OPENSSL_CONF
refuses 2 "write PATH=VALUE, like design.rounds=3" plan "$good" --set design.rounds
refuses 2 "--set design.rounds=0: is 0, must be a whole number from 1 to 1000" plan "$good" --set design.rounds=0
refuses 2 "--set design.round=3: unknown key; allowed: rounds" plan "$good" --set design.round=3
refuses 2 "targets[2] does not exist: targets has the elements 0 to 1 (nginx, lighttpd)" \
    plan "$good" --set 'targets[2].port=1'
refuses 2 'workloads has no element with name "smal"; there are: small, large' \
    plan "$good" --set 'workloads[name=smal].duration=1s'
refuses 2 "is a list: name an element" plan "$good" --set targets.port=1
refuses 2 "'targets[x].port' is no path" plan "$good" --set 'targets[x].port=1'
refuses 2 "must be a port, from 1 to 65535" plan "$good" --set vars.nginx_port=http
refuses 2 "there is no plain TCP, only TLS" hosts --controller tcp://lab1:7411
refuses 2 "tls+tcp://lab1:7411 wants an operator's certificate" hosts --controller lab1 --identity "$work/nobody"
refuses 2 "no local runs yet" report --local --state "$work/fresh"
refuses 2 "no local runs yet" status --local --state "$work/fresh"
refuses 2 "no local runs yet" resume --local --state "$work/fresh" job
refuses 2 "unknown command 'plam'; did you mean 'plan'?" help plam
for command in "" run plan verify status watch report resume cancel hosts controller token enroll revoke; do
    "$sb" help $command >"$work/out" 2>"$work/err" || wrong "help $command"
    grep -q "^usage: splitbench" "$work/out" || wrong "help $command: no usage"
    awk 'length > 80 || / $/ { exit 1 }' "$work/out" || wrong "help $command: wider than 80 columns, or blanks at an end"
done
# What cannot be printed is a failure; a closed stream's number is not given to a file that is then printed into.
for words in help "help run" "plan $good" "plan --json $good" --version; do
    # shellcheck disable=SC2086
    "$sb" $words >/dev/full 2>"$work/err" && wrong "$words: a full device is no failure"
    grep -q "standard output" "$work/err" || wrong "$words: it does not say that its output is lost"
done
"$sb" controller init --state "$work/closed" >&- 2>"$work/err" && wrong "controller init: a closed standard output is no failure"
[ "$(grep -lr "Next: splitbench" "$work/closed")" = "" ] || wrong "controller init: it printed into a file of its own"
head -c 5000000 /dev/zero | tr '\0' ' ' >"$work/big.json"
refuses 2 "big.json has more than 4194304 bytes" plan "$work/big.json"
echo "$tried bad command lines"

# ---- while it runs ------------------------------------------------------------------------------------------
# experiment NAME TARGETS [CHECKS]: a short one into $work/NAME.json.
listing='{ "name": "listing", "request": { "path": "/" }, "expect": { "body": { "contains": "Directory listing" } } }'
experiment() {
    cat >"$work/$1.json" <<JSON
{
  "name": "$1",
  "targets": [ $2 ],
  "checks": [ ${3:-$listing} ],
  "workloads": [ { "name": "w", "request": { "path": "/" }, "connections": 2, "duration": "200ms" } ],
  "gates": { "retries": 0 }
}
JSON
}

# runs CODE TEXT NAME: that exit code of a local run, and the text somewhere in what it says.
runs() {
    tried=$((tried + 1))
    timeout 120 "$sb" run --local --state "$work/state" "$work/$3.json" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    cat "$work/out" >>"$work/err"
    [ "$got" -eq "$1" ] || wrong "$3: exit code $got, not $1"
    grep -qF -- "$2" "$work/err" || wrong "$3: not said: $2"
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python="\"start\": [\"python3\", \"-m\", \"http.server\", \"$port\", \"--bind\", \"\${server.address}\"], \"port\": $port, \"ready\": { \"http\": \"/\", \"timeout\": \"60s\" }"
tried=0

experiment missing-binary '{ "name": "a", "start": ["/no/such/server"], "port": 1234 }'
runs 1 "/no/such/server" missing-binary

experiment bad-build '{ "name": "a", "build": [["sh", "-c", "echo the compiler is gone; exit 3"]], "start": ["sleep", "9"], "port": 1234 }'
runs 1 "the compiler is gone" bad-build

experiment never-ready "{ \"name\": \"a\", \"start\": [\"sleep\", \"60\"], \"port\": $port, \"ready\": { \"tcp\": $port, \"timeout\": \"500ms\" } }"
runs 1 "target 'a'" never-ready
grep -q "ready" "$work/err" || wrong "never-ready: it does not say so"

experiment exits '{ "name": "a", "start": ["sh", "-c", "echo cannot bind >&2; exit 7"], "port": 1234 }'
runs 1 "ended with status 7" exits
grep -q "cannot bind" "$work/err" || wrong "exits: the log is not shown"
"$sb" status --state "$work/state" --local >"$work/out" 2>"$work/err" || wrong "exits: no status"
grep -q "^    .*ended with status 7" "$work/out" || wrong "exits: status does not say why"
"$sb" status --state "$work/state" --local "$(sed -n 2s/' .*'//p "$work/out")" >"$work/out" 2>"$work/err"
grep -q "^    .*cannot bind" "$work/out" || wrong "exits: status of this job does not say all"

# What a server says is shown without what would command the terminal.
experiment escapes '{ "name": "a", "start": ["sh", "-c", "printf \"\\033[31mred\\n\"; exit 7"], "port": 1234 }'
runs 1 " [31mred" escapes
"$sb" status --state "$work/state" --local >>"$work/err" || wrong "escapes: no status"
grep -q "$(printf '\033')" "$work/err" && wrong "escapes: the terminal is commanded"
refuses 2 "no local job none: 'splitbench status --local' lists them" report --state "$work/state" --local none

# A wrong answer: no number for that target, and the job goes on.
experiment wrong-answer "{ \"name\": \"wrong\", \"dir\": \"$work/empty\", $python }, { \"name\": \"right\", \"dir\": \"$work/full\", $python }" \
    '{ "name": "page", "request": { "path": "/page" }, "expect": { "body": "good\n" } }'
mkdir "$work/empty" "$work/full"
echo bad >"$work/empty/page"
echo good >"$work/full/page"
runs 1 "check 'page' failed" wrong-answer
"$sb" report --state "$work/state" --local --json >"$work/report.json" 2>"$work/err" || wrong "wrong-answer: no report"
python3 - "$work/report.json" <<'PY' 2>"$work/err" || wrong "wrong-answer: the numbers"
import json, sys
j = json.load(open(sys.argv[1]))
numbers = {c["target"]: c["rate_per_s"]["n"] for c in j["cells"]}
assert numbers == {"wrong": 0, "right": 1}, numbers
PY

# Bodies of another size than the workload expects: no number, however many errors are allowed.
experiment wrong-length "{ \"name\": \"a\", $python }"
sed -i 's/"duration"/"expect": { "body_bytes": 1 }, "duration"/; s/"retries": 0/"retries": 0, "errors": 1000000/' "$work/wrong-length.json"
runs 1 "answered with another length than expect.body_bytes" wrong-length

# The port is somebody else's: nothing of theirs may be measured.
python3 -m http.server "$port" --bind 127.0.0.1 >/dev/null 2>&1 &
squatter=$!
command=
trap 'kill $squatter $command 2>/dev/null; rm -rf "$work"' EXIT
until curl -s "http://127.0.0.1:$port/" >/dev/null; do kill -0 $squatter || break; done
other=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
free_port="\"start\": [\"python3\", \"-m\", \"http.server\", \"$other\", \"--bind\", \"\${server.address}\"], \"port\": $other, \"ready\": { \"http\": \"/\", \"timeout\": \"60s\" }"
experiment port-taken "{ \"name\": \"a\", $python }, { \"name\": \"b\", $free_port }"
runs 1 "target 'a': port $port is in use by python3" port-taken
"$sb" report --state "$work/state" --local --json >"$work/report.json" 2>"$work/err" || wrong "port-taken: no report"
python3 - "$work/report.json" <<'PY' 2>"$work/err" || wrong "port-taken: the other target is not measured"
import json, sys
j = json.load(open(sys.argv[1]))
numbers = {c["target"]: c["rate_per_s"]["n"] for c in j["cells"]}
assert numbers == {"a": 0, "b": 1}, numbers
PY
kill $squatter
wait $squatter 2>/dev/null
squatter=

# The controller of a local run dies: the command says so at once, with the log's end, and does not wait for its return.
experiment long "{ \"name\": \"a\", $python }"
: >"$work/err" # what the last command said must not be taken for this one's
sed -i 's/"gates"/"design": { "rounds": 1000 }, "gates"/' "$work/long.json"
timeout 120 "$sb" run --local --state "$work/state" "$work/long.json" >"$work/out" 2>"$work/err" </dev/null &
command=$!
until grep -q "round 1" "$work/err"; do kill -0 $command 2>/dev/null || break; sleep 0.1; done
run=$(pgrep -P $command -x splitbench)
kill -9 "$(pgrep -P "$run" -x splitbench)" || wrong "controller-killed: no controller runs"
wait $command
got=$?
command=
tried=$((tried + 1))
[ "$got" -eq 3 ] || wrong "controller-killed: exit code $got, not 3"
grep -qF "the controller of this run has ended" "$work/err" || wrong "controller-killed: it does not say so"

# ^C comes when the job has just ended: that is a job that is done, with its report.
experiment ended "{ \"name\": \"a\", $python }"
: >"$work/err"
"$sb" run --local --state "$work/state" "$work/ended.json" >"$work/out" 2>"$work/err" </dev/null &
command=$!
until grep -q "^job " "$work/err"; do kill -0 $command 2>/dev/null || break; sleep 0.1; done
kill -STOP $command
job=$(sed -n 's/^job //p' "$work/err")
until "$sb" status --local --state "$work/state" --json "$job" | grep -q '"state": *"done"'; do
    kill -0 $command 2>/dev/null || break
    sleep 0.1
done
kill -INT $command
kill -CONT $command
wait $command
got=$?
command=
tried=$((tried + 1))
[ "$got" -eq 0 ] || wrong "ended: exit code $got, not 0"
grep -q "^ended: job $job, done" "$work/out" || wrong "ended: no report, but $(cat "$work/out")"

# Logs of a local run that cannot be opened.
mkdir -p "$work/fifo/local" "$work/dir/local/server.log"
mkfifo "$work/fifo/local/controller.log"
refuses 3 "$work/fifo/local/controller.log" run --local --state "$work/fifo" "$work/ended.json"
refuses 3 "$work/dir/local/server.log: Is a directory" run --local --state "$work/dir" "$work/ended.json"

# Limits of the shell: an error each, not a signal.
# shellcheck disable=SC2016
TMPDIR=/none sh -c 'ulimit -f 0 && exec "$0" help' "$sb" >"$work/out" 2>/dev/null # TSan's start writes to TMPDIR
[ $? -eq 3 ] || wrong "help into a file that may not grow: no failure"
# shellcheck disable=SC2016
sh -c 'ulimit -n 8 && exec "$0" controller --state "$1"' "$sb" "$work/few" >"$work/out" 2>"$work/err"
[ $? -eq 3 ] || wrong "a controller with 8 descriptors: no failure"
grep -q "Too many open files\|too many open files" "$work/err" || wrong "a controller with 8 descriptors: it does not say so"

refuses 3 "$work/none.sock" run --controller "ipc://$work/none.sock" "$good"
refuses 3 "$work/none.sock" status --controller "ipc://$work/none.sock"

"$sb" controller init --state "$work/lab" >/dev/null 2>"$work/err" || wrong "controller init"
python3 -m http.server "$port" --bind 127.0.0.1 >/dev/null 2>&1 &
squatter=$!
until curl -s "http://127.0.0.1:$port/" >/dev/null; do kill -0 $squatter || break; done
refuses 3 "$port" controller --state "$work/lab" --listen "tls+tcp://127.0.0.1:$port"
echo "$tried failures while running"
[ "$failed" -eq 0 ]
