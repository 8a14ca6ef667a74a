# A lab for end-to-end scripts: a scratch directory, processes that end with the script, and three hosts as
# network namespaces with their own addresses. Sourced, with SPLITBENCH_BIN set by tests/run.sh.
# shellcheck shell=sh

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${SPLITBENCH_BIN:-$root/build/bin}
tools=${SPLITBENCH_TOOLS:-$root/build/tests}

# Namespaces and cgroups need root: a user with sudo becomes root, others are told.
lab_need_root() {
    [ "$(id -u)" -eq 0 ] && return
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        exec sudo -n env "SPLITBENCH_BIN=$bin" "SPLITBENCH_TOOLS=$tools" "$0" "$@"
    fi
    echo "$0: needs root or sudo for network namespaces" >&2
    exit 1
}

# lab_build TARGET...: for a script that somebody starts by hand: the programs as the sources are now, and what else it
# needs of make. With SPLITBENCH_BIN set, that build is the one to use, and nothing is built.
lab_build() {
    [ -n "${SPLITBENCH_BIN:-}" ] || make -s -C "$root" all "$@" >&2
}

lab_pids=
lab_spaces=

lab_begin() {
    lab=$(mktemp -d "${TMPDIR:-/tmp}/splitbench-e2e.XXXXXX")
    chmod 755 "$lab"
    trap lab_end EXIT
    trap 'exit 130' INT TERM
}

lab_end() {
    status=$?
    trap - EXIT
    set +e
    for pid in $lab_pids; do kill "$pid" 2>/dev/null; done
    for pid in $lab_pids; do lab_wait_gone "$pid" 15 || kill -9 "$pid" 2>/dev/null; done
    for space in $lab_spaces; do ip netns del "$space" 2>/dev/null; done
    if [ "$status" -ne 0 ]; then
        for log in "$lab"/*.log; do
            [ -s "$log" ] || continue
            echo "--- $(basename "$log")" >&2
            tail -n 25 "$log" >&2
        done
    fi
    [ -n "${SPLITBENCH_KEEP:-}" ] && echo "kept: $lab" >&2 || rm -rf "$lab"
    exit "$status"
}

say() { printf '%s\n' "$*"; }

fail() {
    printf 'FAIL: %s\n' "$*" >&2
    exit 1
}

# lab_spawn NAME COMMAND...: in the background, output to NAME.log; the pid is in $spawned.
lab_spawn() {
    name=$1
    shift
    "$@" >>"$lab/$name.log" 2>&1 &
    spawned=$!
    lab_pids="$lab_pids $spawned"
}

# lab_until SECONDS COMMAND...: until the command succeeds; fails when it does not in time.
lab_until() {
    deadline=$(($(date +%s) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

lab_is_gone() { ! kill -0 "$1" 2>/dev/null; }
lab_wait_gone() { lab_until "$2" lab_is_gone "$1"; }

# Three hosts: ctl (a bridge, 10.77.0.1), srv (10.77.0.2), gen (10.77.0.3). The names carry our pid.
lab_hosts() {
    ctl=sb$$c srv=sb$$s gen=sb$$g
    for space in $ctl $srv $gen; do
        ip netns add "$space" || fail "cannot make a network namespace"
        lab_spaces="$lab_spaces $space"
        ip -n "$space" link set lo up
    done
    ip -n "$ctl" link add br0 type bridge
    ip -n "$ctl" addr add 10.77.0.1/24 dev br0
    ip -n "$ctl" link set br0 up
    lab_cable "$srv" to_srv 10.77.0.2
    lab_cable "$gen" to_gen 10.77.0.3
}

lab_cable() {
    ip -n "$1" link add eth0 type veth peer name "$2" netns "$ctl"
    ip -n "$1" addr add "$3/24" dev eth0
    ip -n "$1" link set eth0 up
    ip -n "$ctl" link set "$2" master br0
    ip -n "$ctl" link set "$2" up
}

# lab_on SPACE COMMAND...
lab_on() {
    space=$1
    shift
    ip netns exec "$space" "$@"
}

# A controller on ctl with certificates, and one enrolled agent each on srv and gen.
lab_controller() {
    [ -d "$lab/state" ] || "$bin/splitbench" controller init --state "$lab/state" >"$lab/init.log" 2>&1 ||
        fail "controller init"
    lab_spawn controller ip netns exec "$ctl" "$bin/splitbench" controller --state "$lab/state" \
        --listen tls+tcp://10.77.0.1:7411 "$@"
    controller_pid=$spawned
    lab_until 10 sb status || fail "the controller does not answer"
}

# lab_enroll NAME SPACE: identity in $lab/NAME.id
lab_enroll() {
    token=$(sb token agent) || fail "no token"
    lab_on "$2" "$bin/splitbench-agent" enroll tls+tcp://10.77.0.1:7411 "$token" --name "$1" \
        --identity "$lab/$1.id" >"$lab/$1.enroll.log" 2>&1 || fail "$1 cannot enroll"
}

# lab_agent NAME SPACE LABEL [OPTION...]: its pid is in $spawned.
lab_agent() {
    agent=$1 space=$2 label=$3
    shift 3
    [ -d "$lab/$agent.id" ] || lab_enroll "$agent" "$space"
    lab_spawn "$agent" ip netns exec "$space" "$bin/splitbench-agent" run --controller tls+tcp://10.77.0.1:7411 \
        --identity "$lab/$agent.id" --state "$lab/$agent.state" --name "$agent" --label "$label" "$@"
}

# What nginx on srv needs to serve small.txt (1,000 bytes) at 10.77.0.2:8080: start it with -c "$lab/nginx.conf".
lab_nginx() {
    mkdir -p "$lab/www"
    head -c 1000 /dev/zero | tr '\0' x >"$lab/www/small.txt"
    chmod -R a+rX "$lab/www"
    cat >"$lab/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $lab/nginx.pid; error_log stderr warn; user root;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 100000000;
  client_body_temp_path $lab/t1; proxy_temp_path $lab/t2; fastcgi_temp_path $lab/t3; uwsgi_temp_path $lab/t4; scgi_temp_path $lab/t5;
  server { listen 10.77.0.2:8080; root $lab/www; } }
CONF
}

# The command line, on the controller's host, over ipc.
sb() {
    command=$1
    shift
    "$bin/splitbench" "$command" --state "$lab/state" "$@"
}

host_connected() {
    sb hosts --json | python3 -c "
import json, sys
names = [h['name'] for h in json.load(sys.stdin)['hosts'] if h['connected'] and not h['job']]
sys.exit(0 if set(sys.argv[1:]) <= set(names) else 1)" "$@"
}

# json FILE EXPRESSION: prints a Python expression over the document `j`; of a report, `attempts` are all of them.
json() {
    python3 -c "
import json, sys
j = json.load(open(sys.argv[1]))
attempts = [a for c in j.get('cells', []) for a in c['attempts']]
print(eval(sys.argv[2]))" "$1" "$2"
}
