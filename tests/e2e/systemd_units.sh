#!/bin/sh
# The systemd units and the roll-out, on a systemd that is booted for this in namespaces of its own, with the
# host's files under an overlay: nothing of the host is changed.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_need_root "$@"
skip() { say "skipped: $*"; exit 0; }
[ -x /lib/systemd/systemd ] || skip "systemd is not installed"
cgroups=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$cgroups" ] || skip "there is no cgroup2 mount"
lab_begin
cage=$cgroups/splitbench-test-$$
init=

machine_end() {
    status=$?
    if [ -n "$init" ]; then
        [ "$status" -eq 0 ] || on journalctl --no-pager -o short -n 60 >"$lab/machine.log" 2>&1 || true
        kill -9 "$init" 2>/dev/null || true
        lab_wait_gone "$init" 10 || true
    fi
    find "$cage" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    (exit "$status")
    lab_end
}

cat >"$lab/boot.sh" <<'BOOT'
#!/bin/sh
# In new mount, pid, cgroup, uts, ipc and network namespaces: makes a root and becomes systemd. $1: scratch.
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
mkdir "$1/up" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/run"
mount -t tmpfs none "$root/tmp"
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/splitbench "$root"/var/lib/splitbench*
printf '[Unit]\nRequires=dbus.socket\nAfter=dbus.socket\n' >"$root/etc/systemd/system/lab.target"
: >"$root/etc/machine-id"
ip link set lo up
exec env -i container=splitbench PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" /lib/systemd/systemd --system --unit=lab.target --show-status=no
BOOT
chmod +x "$lab/boot.sh"
mkdir "$cage" "$lab/machine" || skip "cannot make a cgroup in $cgroups"
trap machine_end EXIT
lab_spawn boot sh -c "echo \$\$ >$cage/cgroup.procs && exec unshare -m -p -C -u -i -n --fork --kill-child $lab/boot.sh $lab/machine"
booter=$spawned

find_init() { init=$(cat "/proc/$booter/task/$booter/children" | tr -d ' ') && [ -n "$init" ] && grep -q '^systemd$' "/proc/$init/comm"; }
lab_until 10 find_init || skip "systemd cannot be booted here: $(tail -n 3 "$lab/boot.log")"
find_init
on() { nsenter -t "$init" -m -p -C -u -i -n -r -w "$@"; }
is_up() { [ "$(on systemctl is-system-running 2>/dev/null)" = running ] || [ "$(on systemctl is-system-running 2>/dev/null)" = degraded ]; }
lab_until 30 is_up || fail "systemd does not come up"
# A sanitized build looks for leaks with ptrace, which the units' sandbox does not let through: it would wait for ever.
on systemctl set-environment ASAN_OPTIONS=detect_leaks=0
printf '#!/bin/sh\nshift\nexec nsenter -t %s -m -p -C -u -i -n -r -w sh -c "$*"\n' "$init" >"$lab/ssh"
chmod +x "$lab/ssh"

machine=/proc/$init/root
units=$root/deploy
install -D -t "$machine/usr/local/bin" "$bin/splitbench"
install -D -m 644 "$units/splitbench.sysusers" "$machine/usr/lib/sysusers.d/splitbench.conf"
install -m 644 "$units/splitbench-controller.service" "$machine/etc/systemd/system/"
on systemd-sysusers 2>/dev/null
as_controller() { on runuser -u splitbench -- splitbench "$@" --state /var/lib/splitbench; }

say "the controller's unit"
on install -d -o splitbench -g splitbench -m 750 /var/lib/splitbench
as_controller controller init >/dev/null || fail "controller init"
on systemctl daemon-reload
on systemctl enable --quiet --now splitbench-controller || fail "the controller's unit does not start"
lab_until 10 as_controller status || fail "the controller does not answer"

say "the roll-out"
token_command="nsenter -t $init -m -p -C -u -i -n -r -w runuser -u splitbench -- splitbench token agent --state /var/lib/splitbench"
roll_out() { "$units/install-agents.sh" --controller 127.0.0.1 --bin "$bin" --ssh "$lab/ssh" --token-command "$token_command" "$@"; }
roll_out sut-01,pool=sut,hardware=vm >"$lab/roll_out.log" 2>&1 || fail "install-agents.sh"
say "  $(tail -n 1 "$lab/roll_out.log")"
if on runuser -u splitbench-agent -- cat /var/lib/splitbench/lab/ca.key.pem 2>/dev/null; then
    fail "the agent's user can read the CA key"
fi
status=0
roll_out -x >"$lab/usage.log" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "a wrong option ends with $status, not 2"
"$units/install-agents.sh" --controller 127.0.0.1 --bin "$bin" --ssh false --token-command "echo sb1.x.y" one two \
    >"$lab/unreachable.log" 2>&1 && fail "unreachable machines are said to be fine"
grep -q '2 of 2 machines failed' "$lab/unreachable.log" || fail "unreachable machines are not counted"

# The load's host is the same machine: an agent beside the unit.
as_controller token agent >"$lab/token" || fail "no token"
on install -d -o splitbench-agent -m 700 /var/lib/gen
on runuser -u splitbench-agent -- splitbench-agent enroll 127.0.0.1 - --name gen-01 --identity /var/lib/gen/id \
    <"$lab/token" >"$lab/enroll.log" 2>&1 || fail "gen-01 cannot enroll"
on systemd-run -q --unit=gen -p User=splitbench-agent -p Delegate=yes -p KillMode=mixed splitbench-agent run \
    --identity /var/lib/gen/id --state /var/lib/gen/state --label pool=loadgen
cat >"$machine/var/lib/splitbench/units.json" <<'JSON'
{
  "name": "units",
  "roles": { "server": { "labels": { "pool": "sut" } }, "load": { "labels": { "pool": "loadgen" } } },
  "targets": [ { "name": "python", "dir": "/usr/share",
                 "start": ["python3", "-m", "http.server", "18099", "--bind", "127.0.0.1"],
                 "ready": { "http": "/common-licenses/BSD", "port": 18099, "timeout": "20s" } } ],
  "workloads": [ { "name": "file", "request": { "path": "/common-licenses/BSD" }, "connections": 2, "warmup": "200ms",
                   "duration": "2s", "timeout": "5s" } ],
  "design": { "rounds": 30, "order": "fixed", "cooldown": "0s" },
  "gates": { "errors": 0, "retries": 0 }
}
JSON
hosts_free() { [ "$(as_controller hosts --json | json /dev/stdin "sum(1 for h in j['hosts'] if h['connected'] and not h['job'])")" = 2 ]; }
server_pid() { on pgrep -f 'http.server 18099' | head -n 1; }
server_runs() { [ -n "$(server_pid)" ]; }
server_gone() { ! server_runs; }
start_job() {
    lab_until 30 hosts_free || fail "the hosts are not free: $(as_controller hosts)"
    job=$(as_controller run --detach /var/lib/splitbench/units.json) || fail "cannot submit"
    lab_until 30 server_runs || fail "the target does not start: $(as_controller status "$job")"
}
agent_is() { [ "$(on systemctl show -P "$1" splitbench-agent)" = "$2" ]; }

say "a job in the agent's unit"
start_job
pid=$(server_pid)
leaf=$(on cat "/proc/$pid/cgroup" | sed -n 's/^0:://p')
case $leaf in */splitbench-agent.service/*) say "  leaf $leaf" ;; *) fail "not in a leaf of the unit: $leaf" ;; esac
on grep -q '^Seccomp:[[:space:]]*0$' "/proc/$pid/status" || fail "the server under test has a seccomp filter"
on grep -q '^NoNewPrivs:[[:space:]]*1$' "/proc/$pid/status" || fail "the server under test may gain privileges"

say "kill -9 of the agent"
before=$(on systemctl show -P MainPID splitbench-agent)
on kill -9 "$before"
lab_until 15 server_gone || fail "the target lives on"
lab_until 20 hosts_free || fail "the agent does not come back: $(on systemctl status --no-pager splitbench-agent)"
[ "$(on systemctl show -P MainPID splitbench-agent)" != "$before" ] || fail "the same agent"

say "kill -9 of the controller"
start_job
on kill -9 "$(on systemctl show -P MainPID splitbench-controller)"
lab_until 20 server_gone || fail "the target lives on"
lab_until 20 hosts_free || fail "the controller does not come back"

say "systemctl stop"
start_job
on systemctl stop splitbench-agent || fail "stop"
server_gone || fail "the target lives on"
agent_is ActiveState inactive || fail "the agent's unit is $(on systemctl show -P ActiveState,Result splitbench-agent)"
agent_is Result success || fail "the agent did not end well: $(on systemctl show -P Result splitbench-agent)"
job_failed() { as_controller status "$job" | grep -q failed; }
lab_until 5 job_failed || fail "the job does not end with its agent: $(as_controller status "$job")"
as_controller status "$job" --json | json /dev/stdin "j['jobs'][0]['cause']" | grep -q "sut-01.*told to end" ||
    fail "the cause is not the agent's end: $(as_controller status "$job" --json)"

say "the roll-out again: an upgrade keeps identity and labels"
roll_out sut-01 >"$lab/roll_out.log" 2>&1 || fail "install-agents.sh, the second time"
lab_until 20 hosts_free || fail "the agent is not back"
as_controller hosts --json | json /dev/stdin "[h['labels'] for h in j['hosts'] if h['name'] == 'sut-01']" | grep -q vm ||
    fail "the labels are lost: $(as_controller hosts --json)"
on systemctl stop splitbench-controller || fail "stop of the controller"
[ "$(on systemctl show -P Result splitbench-controller)" = success ] || fail "the controller did not end well"
say "units and roll-out as documented"
