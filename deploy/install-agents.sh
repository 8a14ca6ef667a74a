#!/bin/sh
# Rolls agents out over ssh: copies the programs, installs the unit, enrolls with a one-time token each, starts.
# Run it where the controller is. Run it again to upgrade: an enrolled machine keeps its identity.
#
#   deploy/install-agents.sh [OPTIONS] HOST[,KEY=VALUE...] ...
#
#   --controller ADDRESS   where the agents dial, as they see it: HOST[:PORT]  (required)
#   --bin DIR              the programs to copy (default: build/bin, else where splitbench-agent is found)
#   --jobs N               machines at a time (default 8)
#   --token-command CMD    prints one token (default: splitbench token agent)
#   --ssh CMD              how to reach a machine (default: ssh -o BatchMode=yes)
#
# HOST is what ssh takes, user@host too; without user@ it is also the agent's name. What follows the commas are
# labels that experiments choose machines by. The login must be root or have sudo without a password.
#
#   deploy/install-agents.sh --controller lab1.example sut-01,pool=sut,hardware=i7-13700k gen-01,pool=loadgen
#
# Exit code: 0 when every machine runs an enrolled agent, 3 when one does not (each is named with the reason), 2
# for a mistake in the command line.
set -u

here=$(cd "$(dirname "$0")" && pwd)
controller=
bin=
jobs=8
token_command='splitbench token agent'
ssh='ssh -o BatchMode=yes'

usage() {
    echo "install-agents.sh: $*; --help tells more" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --help | -h)
        sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
    --controller | --bin | --jobs | --token-command | --ssh)
        [ $# -ge 2 ] || usage "$1 needs a value"
        case $1 in
        --controller) controller=$2 ;;
        --bin) bin=$2 ;;
        --jobs) jobs=$2 ;;
        --token-command) token_command=$2 ;;
        --ssh) ssh=$2 ;;
        esac
        shift 2
        ;;
    --)
        shift
        break
        ;;
    -*) usage "unknown option $1" ;;
    *) break ;;
    esac
done
[ -n "$controller" ] || usage "say where the agents dial with --controller"
[ $# -gt 0 ] || usage "name at least one HOST"
case $jobs in '' | *[!0-9]* | 0) usage "--jobs \"$jobs\" is not a number from 1 up" ;; esac
case $controller in *[!A-Za-z0-9.:_/+%\[\]-]*) usage "--controller \"$controller\" is not an address" ;; esac
for host in "$@"; do
    case $host in -* | ,* | '') usage "\"$host\" is not HOST[,KEY=VALUE...]" ;; esac
    case $host in *[!A-Za-z0-9.,:=@_-]*) usage "\"$host\" holds a letter that is not allowed" ;; esac
done

if [ -z "$bin" ]; then
    if [ -x "$here/../build/bin/splitbench-agent" ]; then
        bin=$here/../build/bin
    else
        bin=$(dirname "$(command -v splitbench-agent || echo /nowhere/)")
    fi
fi
for program in splitbench-agent splitbench-load; do
    [ -x "$bin/$program" ] || usage "there is no $program in $bin: build it, or say --bin"
done
unit=
for dir in "$here" "$bin/../lib/systemd/system"; do
    [ -f "$dir/splitbench-agent.service" ] && unit=$dir/splitbench-agent.service && break
done
[ -n "$unit" ] || usage "splitbench-agent.service is neither beside this script nor installed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# What runs on each machine, as root: ADDRESS NAME LABEL... with the token on standard input.
cat >"$work/setup.sh" <<'SETUP'
set -eu
cd "$(dirname "$0")"
address=$1 name=$2
shift 2
command -v systemctl >/dev/null || { echo "no systemd here" >&2; exit 1; }
# known PACKAGE...: the first that this release has.
known() {
    for package in "$@"; do
        apt-cache show --no-all-versions "$package" >/dev/null 2>&1 && break
    done
    echo "$package"
}
if ldd ./splitbench-agent ./splitbench-load | grep -q '=> not found'; then
    echo "installing libraries"
    command -v apt-get >/dev/null || { echo "no apt-get here to install:"; ldd ./splitbench-agent ./splitbench-load | grep '=> not found'; exit 1; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Debian 13 names two of them after its 64-bit time_t.
    apt-get install -y -qq --no-install-recommends libnng1 libprotobuf-c1 libcjson1 liburing2 zlib1g \
        "$(known libuv1t64 libuv1)" "$(known libssl3t64 libssl3)" >/dev/null
fi
for program in ./splitbench-agent ./splitbench-load; do
    $program --version >/dev/null && continue
    echo "these programs do not run on this release; built on the oldest one in the lab, they run on all"
    exit 1
done
getent passwd splitbench-agent >/dev/null ||
    useradd --system --user-group --home-dir /var/lib/splitbench-agent --shell /usr/sbin/nologin splitbench-agent
for program in splitbench-agent splitbench-load; do
    install -D -m 755 $program /usr/local/bin/$program.new
    mv /usr/local/bin/$program.new /usr/local/bin/$program # a running one keeps its own file
done
install -D -m 644 splitbench-agent.service /etc/systemd/system/splitbench-agent.service
options="--controller $address"
for label in "$@"; do options="$options --label $label"; done
install -d -m 755 /etc/splitbench
[ -e /etc/splitbench/agent.env ] && [ $# -eq 0 ] || printf 'SPLITBENCH_AGENT_OPTIONS=%s\n' "$options" >/etc/splitbench/agent.env
if [ -e /etc/splitbench/agent/cert.pem ]; then
    echo "enrolled already"
else
    ./splitbench-agent enroll "$address" - --name "$name" --identity /etc/splitbench/agent
    chown -R splitbench-agent: /etc/splitbench/agent
fi
systemctl daemon-reload
systemctl enable --quiet splitbench-agent
systemctl restart splitbench-agent
sleep 2 # an agent that cannot start has ended by then
systemctl --quiet is-active splitbench-agent || { journalctl -n 5 --no-pager -o cat -u splitbench-agent >&2; exit 1; }
echo "$(./splitbench-agent --version | head -n 1) runs as $name"
SETUP
cp "$bin/splitbench-agent" "$bin/splitbench-load" "$unit" "$work/"
tar -C "$work" -czf "$work/agent.tar.gz" splitbench-agent splitbench-load splitbench-agent.service setup.sh || exit 3

# install_one HOST[,LABELS]
install_one() {
    target=${1%%,*}
    name=${target##*@}
    labels=$(echo "$1" | tr ',' ' ' | cut -s -d' ' -f2-)
    token=$($token_command) || { echo "cannot get a token: $token_command"; return 1; }
    dir=/tmp/splitbench-setup.$$
    # shellcheck disable=SC2029,SC2086 # the words are for the other side, and checked above
    $ssh "$target" "rm -rf $dir && mkdir -m 700 $dir && tar -xzf - -C $dir" <"$work/agent.tar.gz" || return 1
    # shellcheck disable=SC2029,SC2086
    printf '%s\n' "$token" | $ssh "$target" "as_root=; [ \$(id -u) -eq 0 ] || as_root='sudo -n';
        \$as_root sh $dir/setup.sh $controller $name $labels; status=\$?; rm -rf $dir; exit \$status"
}

# Machines in parallel, so many at a time; each leaves its output and its end in files.
run_all() {
    running=0
    for host in "$@"; do
        file=$work/host.${host%%,*}
        (install_one "$host" >"$file.out" 2>&1 && echo ok >"$file.ok") &
        running=$((running + 1))
        if [ $((running % jobs)) -eq 0 ]; then wait; fi
    done
    wait
}

run_all "$@"
bad=0
for host in "$@"; do
    file=$work/host.${host%%,*}
    if [ -e "$file.ok" ]; then
        printf '%-24s ok: %s\n' "${host%%,*}" "$(tail -n 1 "$file.out")"
    else
        printf '%-24s FAILED\n' "${host%%,*}"
        sed 's/^/    /' "$file.out"
        bad=$((bad + 1))
    fi
done
[ "$bad" -eq 0 ] || { echo "install-agents.sh: $bad of $# machines failed" >&2; exit 3; }
