#!/bin/sh
# An operator who is not on the controller's machine, over TLS with a certificate: enrolls, looks, runs, leaves,
# comes back, cancels, resumes, reads the report, on a terminal and without one, and is revoked.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
cd "$lab" # nothing of the controller's state is found by chance
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
address=127.0.0.1:$(free_port)
port=$(free_port)

# op COMMAND [ARGUMENT...]: as the operator.
op() {
    command=$1
    shift
    "$bin/splitbench" "$command" --controller "$address" --identity "$lab/ann.id" "$@"
}
# refused CODE TEXT COMMAND...
refused() {
    code=$1 text=$2 got=0
    shift 2
    "$@" >"$lab/said" 2>&1 || got=$?
    [ "$got" -eq "$code" ] || fail "$*: exit code $got, not $code: $(cat "$lab/said")"
    grep -qF -- "$text" "$lab/said" || fail "$*: not said: $text: $(cat "$lab/said")"
}
state() { op status "$1" --json | json /dev/stdin "j['jobs'][0]['state']"; }
windows_done() { [ "$(op status "$1" --json | json /dev/stdin "j['jobs'][0]['windows_done']")" -ge "$2" ]; }
is_state() { [ "$(state "$1")" = "$2" ]; }

"$bin/splitbench" controller init --state "$lab/state" >"$lab/init.log" 2>&1 || fail "controller init"
lab_spawn controller "$bin/splitbench" controller --state "$lab/state" --listen "tls+tcp://$address"
lab_until 10 sb status || fail "the controller does not answer"
for name in sut gen; do
    token=$(sb token agent)
    "$bin/splitbench-agent" enroll "$address" "$token" --name $name --identity "$lab/$name.id" >"$lab/enroll.log" 2>&1 ||
        fail "$name cannot enroll: $(cat "$lab/enroll.log")"
    lab_spawn $name "$bin/splitbench-agent" run --identity "$lab/$name.id" --state "$lab/$name.state" --label pool=$name
done
lab_until 10 host_connected sut gen || fail "the agents do not connect"

say "enrolls, once"
refused 2 "wants an operator's certificate" op hosts
token=$(sb token operator)
"$bin/splitbench" enroll "$address" "$token" --name ann --identity "$lab/ann.id" >"$lab/said" 2>&1 ||
    fail "ann cannot enroll: $(cat "$lab/said")"
refused 3 "the token was used" "$bin/splitbench" enroll "$address" "$token" --name eve --identity "$lab/eve.id"
op hosts >"$lab/hosts.txt" || fail "hosts"
grep -A 1 '^sut  *free ' "$lab/hosts.txt" | grep -q '^    pool=sut' || fail "hosts: $(cat "$lab/hosts.txt")"

cat >"$lab/operator.json" <<JSON
{
  "name": "operator",
  "vars": { "port": $port },
  "roles": { "server": { "labels": { "pool": "sut" } }, "load": { "labels": { "pool": "gen" } } },
  "files": ["www"],
  "targets": [ { "name": "python", "dir": "www", "start": ["python3", "-m", "http.server", "\${port}", "--bind", "\${server.address}"],
                 "port": "\${port}", "ready": { "http": "/", "timeout": "60s" } } ],
  "checks": [ { "name": "page", "request": { "path": "/page" }, "expect": { "body": "from afar\n" } } ],
  "workloads": [ { "name": "page", "request": { "path": "/page" }, "connections": 2, "duration": "1500ms" } ],
  "design": { "rounds": 6 },
  "gates": { "errors": 1000000 }
}
JSON
mkdir "$lab/www"
echo "from afar" >"$lab/www/page"

say "verifies, with checks and without any"
op verify "$lab/operator.json" >"$lab/said" 2>&1 || fail "verify: $(cat "$lab/said")"
grep -q "^target 'python': started, answered 1 check as expected, stopped$" "$lab/said" || fail "verify: $(cat "$lab/said")"
sed '/"checks"/d' "$lab/operator.json" >"$lab/unchecked.json"
op verify "$lab/unchecked.json" >"$lab/said" 2>&1 || fail "verify without checks: $(cat "$lab/said")"
grep -q "^target 'python': started and stopped; the experiment has no checks$" "$lab/said" ||
    fail "verify without checks: $(cat "$lab/said")"

say "runs and leaves; watches and leaves: the job goes on"
job=$(op run --detach "$lab/operator.json") || fail "run --detach"
echo "$job" | grep -Eqx '[0-9]{8}-[0-9]{6}-[0-9a-hjkmnp-tv-z]{13}' || fail "the id has no 65 random bits: $job"
lab_spawn watch "$bin/splitbench" watch --controller "$address" --identity "$lab/ann.id" "${job%?}"
watcher=$spawned
lab_until 60 grep -q "^round 1/6 python page c=2: " "$lab/watch.log" || fail "watch: $(cat "$lab/watch.log")"
kill -INT $watcher
got=0
wait $watcher || got=$?
[ $got -eq 3 ] || fail "watch: exit code $got after ^C, not 3"
grep -q "job $job goes on" "$lab/watch.log" || fail "watch does not say that the job goes on: $(cat "$lab/watch.log")"
if grep -q "$(printf '\033')" "$lab/watch.log"; then fail "a bar is drawn where there is no terminal"; fi

say "cancels, and resumes"
is_state "$job" running || fail "the job does not go on: $(state "$job")"
op cancel "${job%?}" >"$lab/said" || fail "cancel"
grep -qF "job $job is cancelled" "$lab/said" || fail "cancel does not name the job: $(cat "$lab/said")"
lab_until 30 is_state "${job%?}" cancelled || fail "the job is not cancelled: $(state "$job")"
refused 2 "" op cancel "$job"
refused 2 "the beginning of more than one job: " op report 2
op report "${job%?}" | grep -q "NOT COMPLETE: the job was cancelled by 'ann'" || fail "the report hides who cancelled"
rm "$lab"/state/blobs/* # as if room had been made for other jobs
refused 2 "1 of the 1 files of job '$job' is no longer here, as the job had them (www/page)" op resume "$job"
sed 's/operator/other/; s/"www"/"other"/' "$lab/operator.json" >"$lab/other.json"
mkdir "$lab/other"
echo "of another" >"$lab/other/page"
refused 2 "splitbench resume $job FILE" op resume "$job" "$lab/other.json"
op resume "$job" "$lab/operator.json" >"$lab/report.txt" 2>"$lab/resume.log" || fail "resume: $(cat "$lab/resume.log")"
grep -q "^resumed: [1-5] of 6 already measured" "$lab/resume.log" || fail "resume: $(cat "$lab/resume.log")"
op report "$job" --json >"$lab/report.json"
[ "$(json "$lab/report.json" "sorted(a['window'] for a in attempts if a['final'])")" = "[0, 1, 2, 3, 4, 5]" ] ||
    fail "not every window once: $(cat "$lab/report.json")"

say "reads the report"
awk 'length > 80 { exit 1 }' "$lab/report.txt" || fail "the report is wider than 80 columns"
for words in 'req/s .*SD .*CV .*min .*max' 'p50 .*p90 .*p99' 'server .*generator .*errors .*attempts' \
    'start-up .*RSS before .*RSS after' '^placement  *split-cpus\|^placement  *shared'; do
    grep -q -- "$words" "$lab/report.txt" || fail "the report lacks $words: $(cat "$lab/report.txt")"
done
[ "$(json "$lab/report.json" "all(c[k] is not None for c in j['cells'] for k in ('rate_per_s', 'latency_ns', 'failed',
    'attempts_made', 'server_cpu_cores', 'generator_cpu_cores')) and all(t[k]['mean'] > 0 for t in j['targets']
    for k in ('startup_ns', 'rss_before_bytes', 'rss_after_bytes'))")" = True ] || fail "figures: $(cat "$lab/report.json")"

say "has scripts: results on standard output, nothing else said"
op watch "$job" >"$lab/watched.txt" 2>"$lab/said" || fail "watch of a job that is done: $(cat "$lab/said")"
cmp -s "$lab/report.txt" "$lab/watched.txt" || fail "watch ends with another report: $(cat "$lab/watched.txt")"
op watch --json -q "$job" >"$lab/watched.json" 2>"$lab/said" || fail "watch --json: $(cat "$lab/said")"
job=$(op run --detach --set design.rounds=2 "$lab/operator.json") || fail "run --detach"
op cancel "$job" >"$lab/said" || fail "cancel"
lab_until 30 is_state "$job" cancelled || fail "the job is not cancelled: $(state "$job")"
[ "$(op resume --detach "${job%?}")" = "$job" ] || fail "resume --detach does not print the job's id"
op cancel "$job" >>"$lab/said" || fail "cancel"
lab_until 30 is_state "$job" cancelled || fail "the job is not cancelled: $(state "$job")"
op resume --json -q "$job" >"$lab/resumed.json" 2>>"$lab/said" || fail "resume --json: $(cat "$lab/said")"
[ "$(grep -vc "is cancelled; what was measured stays" "$lab/said")" -eq 0 ] || fail "not quiet: $(cat "$lab/said")"
for name in watched resumed; do
    [ "$(json "$lab/$name.json" "j['format'], j['job']['state']")" = "('splitbench-report/1', 'done')" ] ||
        fail "$name.json: $(cat "$lab/$name.json")"
done

cat >"$lab/terminal.py" <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        data = os.read(fd, 65536)
    except OSError:
        data = b""
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
# on_terminal COLUMNS COMMAND [ARGUMENT...]: as the operator, on a terminal so wide; what it shows is in $lab/terminal.
on_terminal() {
    columns=$1 command=$2
    shift 2
    python3 "$lab/terminal.py" "$columns" "$bin/splitbench" "$command" --controller "$address" --identity "$lab/ann.id" "$@" \
        >"$lab/terminal" 2>"$lab/terminal.err" || fail "$command on a terminal: $(cat "$lab/terminal" "$lab/terminal.err")"
}

say "sees jobs and hosts whole on 80 columns"
job=$(op run --detach --set name=a-name-that-is-longer-than-its-column-in-the-list --set roles.server.labels.pool=none \
    "$lab/operator.json") || fail "run --detach"
lab_until 10 sh -c '"$@" | grep -q "waiting for hosts"' _ "$bin/splitbench" status --controller "$address" \
    --identity "$lab/ann.id" "$job" || fail "the job does not wait: $(op status "$job")"
for list in status hosts; do
    on_terminal 80 $list
    tr -d '\r' <"$lab/terminal" >"$lab/$list.txt"
    awk 'length > 80 { exit 1 }' "$lab/$list.txt" || fail "$list is wider than 80 columns: $(cat "$lab/$list.txt")"
done
grep -q "^$job  queued  *0/6  *-  *a-name-that-is-.*\.\.$" "$lab/status.txt" || fail "status: $(cat "$lab/status.txt")"
grep -q '  verify  ' "$lab/status.txt" || fail "status does not say what was only verified: $(cat "$lab/status.txt")"
tr -s ' \n' ' ' <"$lab/status.txt" | grep -qF "waiting for hosts: role 'server' needs 1 agent with pool=none; this controller \
has not seen enough of them (\`splitbench hosts\` lists those it has)" || fail "status cuts a cause: $(cat "$lab/status.txt")"
op cancel "$job" >"$lab/said" || fail "cancel"

say "follows a run on a terminal"
on_terminal 100 run --set design.rounds=2 --set 'workloads[0].duration=3s' "$lab/operator.json"
python3 - "$lab/terminal" <<'PY' || fail "the bar"
import re, sys
text = open(sys.argv[1], newline="").read()
bars = re.findall(r"\r\x1b\[J(\[[#.]{24}\] [^\r\n\x1b]*)", text)
assert any(re.match(r"\[\.{24}\] 0/2  \S+ left  ", b) for b in bars), bars
assert any(re.search(r"\] [01]/2  \S+ left  [0-9.]+[kM]?/s  round [12]/2 python page c=2 window", b) for b in bars), bars
assert all(len(b) < 100 for b in bars), bars
assert "req/s" in text.rsplit("\x1b[J", 1)[1], text
PY

say "makes tokens; they are listed, and go with their maker, who puts itself out"
earlier=$(op token operator) || fail "token"
token=$(op token operator) || fail "token"
"$bin/splitbench" enroll "$address" "$token" --name bob --identity "$lab/bob.id" >"$lab/said" 2>&1 || fail "bob cannot enroll"
op token --list >"$lab/tokens.txt" || fail "token --list"
grep -q '^operator  unused  ann  ' "$lab/tokens.txt" || fail "the list has no token of ann: $(cat "$lab/tokens.txt")"
grep -q '^operator  used  *ann  .*  bob$' "$lab/tokens.txt" || fail "the list does not say who came: $(cat "$lab/tokens.txt")"
op revoke ann >"$lab/said" || fail "revoke of one's own name: $(cat "$lab/said")"
for words in "ann is refused from now on; it is the certificate that this was asked with" \
    "; 1 unused token of its making cannot be used any more" "still in, with earlier tokens of its making: bob"; do
    grep -qF "$words" "$lab/said" || fail "revoke does not say '$words': $(cat "$lab/said")"
done
refused 3 "the certificate of 'ann' was revoked; enroll with a new token" op hosts
refused 3 "the token was taken back" "$bin/splitbench" enroll "$address" "$earlier" --name ann --identity "$lab/ann2.id"
sb token --list --json | json /dev/stdin "[t['state'] for t in j['tokens'] if t['made_by'] == 'ann']" >"$lab/states"
[ "$(cat "$lab/states")" = "['used', 'revoked']" ] || fail "token --list --json: $(cat "$lab/states")"
refused 2 "takes no 'agent'" sb token --list agent
refused 2 "neither agent nor operator" sb token
say "over TLS: enrolled, ran, left, cancelled, resumed, reported, revoked"
