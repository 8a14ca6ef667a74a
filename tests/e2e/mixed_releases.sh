#!/bin/sh
# One lab, two Debian releases: controller, agents and operator of this one and of the other work together over TLS,
# each enrolled with the other's CA; every request is accounted for, and the report tells whose libraries ran where.
#   SPLITBENCH_OTHER_ROOT   a root of the other release, for instance from `tests/support/fresh_root.sh make`; packages
#                           that the build needs are added to it (default: one is made, for the time of the test)
set -eu
TMPDIR=${TMPDIR:-/var/tmp} # a whole system may have no room in /tmp
. "$(dirname "$0")/../support/lab.sh"
[ "$(id -u)" -eq 0 ] || { echo "mixed_releases: needs root" >&2; exit 1; }
fresh=$root/tests/support/fresh_root.sh
release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
case $release in
bookworm) other_release=trixie ;;
trixie) other_release=bookworm ;;
*) echo "mixed_releases: knows Debian 12 and 13, not '$release'" >&2; exit 1 ;;
esac
lab_begin
other=${SPLITBENCH_OTHER_ROOT:-$lab/other}
# The other release sees our scratch directory, and where this tree is, a copy of it with a build of its own.
mkdir "$lab/tree"
export FRESH_BINDS="$lab:$lab $lab/tree:$root" FRESH_CACHE="${FRESH_CACHE:-$lab/packages}"

# A root that was given keeps no more of the mounts than, maybe, an empty directory above ours.
mixed_end() {
    status=$?
    [ -z "${SPLITBENCH_OTHER_ROOT-}" ] || rmdir "$other$lab" "$other$root" 2>/dev/null || :
    (exit "$status")
    lab_end
}
trap mixed_end EXIT

# enter COMMAND...: in the other release.
enter() { "$fresh" enter "$other" "$@"; }

make_other() {
    if [ ! -e "$other/etc/os-release" ]; then
        say "a base system of $other_release"
        "$fresh" make "$other_release" "$other" make,curl
    fi
    [ "$(. "$other/etc/os-release" && echo "$VERSION_CODENAME")" = "$other_release" ] || fail "$other is not $other_release"
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -C "$lab/tree" -xf -
    say "a build on $other_release"
    # shellcheck disable=SC2016 # for the inner shell
    enter sh -eu -c 'cd "$1" && deploy/deps.sh build demo && make -j"$(nproc)" all' sh "$root" >"$lab/build.log" 2>&1 ||
        fail "$other_release does not build"
    enter sh -c 'command -v curl >/dev/null || apt-get -qq install -y --no-install-recommends curl' >>"$lab/build.log" 2>&1
}

# on SIDE SPACE PROGRAM ARGUMENT...: a program of ours, of this release or of the other, on a host of the lab.
on() {
    side=$1 space=$2 program=$3
    shift 3
    case $side in
    here) lab_on "$space" "$bin/$program" "$@" ;;
    other) lab_on "$space" "$fresh" enter "$other" "$root/build/bin/$program" "$@" ;;
    esac
}
spawn_on() {
    side=$1 space=$2 program=$3 log=$4
    shift 4
    case $side in
    here) lab_spawn "$log" ip netns exec "$space" "$bin/$program" "$@" ;;
    other) lab_spawn "$log" ip netns exec "$space" "$fresh" enter "$other" "$root/build/bin/$program" "$@" ;;
    esac
}

address=10.77.0.1:7411
running=

# controller SIDE
controller() {
    on "$1" "$ctl" splitbench controller init --state "$lab/state" >"$lab/init.log" 2>&1 || fail "controller init"
    spawn_on "$1" "$ctl" splitbench controller controller --state "$lab/state" --listen "tls+tcp://$address"
    running="$running $spawned"
    lab_until 20 sb status || fail "the controller does not answer"
}

# agent SIDE NAME SPACE LABEL [OPTION...]
agent() {
    side=$1 name=$2 space=$3 label=$4
    shift 4
    token=$(sb token agent) || fail "no token"
    on "$side" "$space" splitbench-agent enroll "$address" "$token" --name "$name" --identity "$lab/$name.id" \
        >"$lab/$name.enroll.log" 2>&1 || fail "$name cannot enroll"
    spawn_on "$side" "$space" splitbench-agent "$name" run --identity "$lab/$name.id" --state "$lab/$name.state" \
        --label "$label" "$@"
    running="$running $spawned"
}

# operator SIDE SPACE COMMAND [ARGUMENT...]: over TLS, with a certificate.
operator() {
    side=$1 space=$2 command=$3
    shift 3
    on "$side" "$space" splitbench "$command" --controller "$address" --identity "$lab/ann.id" "$@"
}

# libraries SIDE: as the agent of that side has to tell them.
libraries() { on "$1" "$ctl" splitbench-agent --version | sed -n '2,$s/^  //p' | paste -s -d, | sed 's/,/, /g'; }

# lab_of CONTROLLER SERVER LOAD OPERATOR: four sides; a run that the operator asks for, and its accounts.
lab_of() {
    say "controller $1, server $2, load $3, operator $4"
    rm -rf "$lab/state" "$lab/count" "$lab"/*.id "$lab"/*.state
    controller "$1"
    agent "$2" server1 "$srv" pool=sut --address 10.77.0.2
    agent "$3" load1 "$gen" pool=loadgen
    token=$(sb token operator) || fail "no token"
    on "$4" "$gen" splitbench enroll "$address" "$token" --name ann --identity "$lab/ann.id" >"$lab/ann.log" 2>&1 ||
        fail "the operator cannot enroll"
    lab_until 20 host_connected server1 load1 || fail "the agents do not connect"
    operator "$4" "$gen" run "$lab/mixed.json" >"$lab/run.log" 2>&1 || fail "the run failed"
    operator "$4" "$gen" report --json >"$lab/report.json" || fail "no report"
    sent=$(json "$lab/report.json" "sum(a['result']['requests_sent'] for a in attempts)")
    counted=$(awk '{ n += $1 } END { print n }' "$lab/count")
    [ "$sent" -gt 500 ] || fail "hardly any load: $sent"
    [ "$((sent + 1))" -eq "$counted" ] || fail "the generator sent $sent and one check, nginx counted $counted"
    json "$lab/report.json" "'\n'.join(h['libraries'] for h in sorted(j['hosts'], key=lambda h: h['role'], reverse=True))" \
        >"$lab/told"
    { libraries "$2" && libraries "$3"; } >"$lab/expected"
    cmp -s "$lab/told" "$lab/expected" || fail "the report's libraries: $(diff "$lab/told" "$lab/expected")"
    [ "$2" = "$3" ] || [ "$(sort -u "$lab/told" | wc -l)" -eq 2 ] || fail "both sides run the same libraries"
    for pid in $running; do kill "$pid"; done
    for pid in $running; do lab_wait_gone "$pid" 20 || fail "a daemon does not end when told"; done
    running=
}

# What deploy/README.md promises: programs of the older release run on the newer one.
older_runs_on_newer() {
    say "programs of bookworm on trixie"
    mkdir "$lab/older"
    for program in splitbench splitbench-agent splitbench-load; do
        if [ "$release" = bookworm ]; then
            cp "$bin/$program" "$lab/older/"
            enter "$lab/older/$program" --version >"$lab/older.log" 2>&1 || fail "$program: $(cat "$lab/older.log")"
        else
            "$lab/tree/build/bin/$program" --version >"$lab/older.log" 2>&1 || fail "$program: $(cat "$lab/older.log")"
        fi
    done
}

cat >"$lab/mixed.json" <<JSON
{
  "name": "mixed-releases",
  "roles": { "server": { "labels": { "pool": "sut" } }, "load": { "labels": { "pool": "loadgen" } } },
  "targets": [
    { "name": "nginx", "dir": "$lab",
      "start": ["$root/tests/support/nginx_counted.sh", "$lab/count", "10.77.0.2", "8080"],
      "ready": { "tcp": 8080, "timeout": "20s" } }
  ],
  "checks": [ { "name": "small", "request": { "path": "/small.txt" }, "expect": { "status": 200, "body_bytes": 1000 } } ],
  "workloads": [
    { "name": "small", "request": { "path": "/small.txt" }, "connections": 16, "warmup": "500ms", "duration": "2s",
      "expect": { "body_bytes": 1000 } }
  ],
  "design": { "rounds": 1, "cooldown": "0s" },
  "gates": { "errors": 0 }
}
JSON
make_other
lab_hosts
older_runs_on_newer
lab_of here other here other
lab_of other here other here
lab_of other other other here
say "$release and $other_release work in one lab"
