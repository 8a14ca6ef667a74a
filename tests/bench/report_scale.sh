#!/bin/sh
# What a controller with many results takes to tell of them: the report of a job of 100,000 windows as text and as JSON,
# `status` meanwhile, and `status` of 10,000 jobs. Aims: each report in under 10 s and 200 MB of the controller,
# `status` of a job under 100 ms meanwhile, of 10,000 jobs under 0.5 s. Prints every figure. It measures a few real
# windows first and copies them, so it needs nginx and lighttpd, and some 2 GB in TMPDIR.
#   tests/bench/report_scale.sh [ROUNDS [JOBS]]     each round has 100 windows
set -eu
. "$(dirname "$0")/../support/lab.sh"
rounds=${1:-1000}
jobs=${2:-10000}
lab_build
lab_begin

"$bin/splitbench" run --local --quiet --json --state "$lab/state" --set design.rounds=2 --set design.cooldown=0s \
    --set design.gap=0s --set 'workloads[0].warmup=100ms' --set 'workloads[0].duration=500ms' \
    --set 'workloads[1].warmup=100ms' --set 'workloads[1].duration=500ms' \
    "$root/docs/examples/nginx-lighttpd.json" >"$lab/measured.json"
mkdir -m 700 "$lab/daemon"
cp "$(find "$lab/state" -name '*.db')" "$lab/daemon/store.db"
python3 "$here/report_scale.py" "$lab/daemon/store.db" "$rounds" "$jobs"
lab_spawn controller "$bin/splitbench" controller --state "$lab/daemon" --listen "ipc://$lab/daemon/socket"
controller=$spawned
ask() { "$bin/splitbench" "$@" --controller "ipc://$lab/daemon/socket"; }
lab_until 20 ask status large || fail "the controller does not answer"

failed=0
now_ms() { echo $(($(date +%s%N) / 1000000)); }
cpu_ms() { # of the controller, since it began
    ticks=$(sed 's/.*) //' "/proc/$controller/stat" | cut -d' ' -f12,13 | tr ' ' '+')
    echo $((($ticks) * 1000 / $(getconf CLK_TCK)))
}
peak_kib() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$controller/status"; }
# row NAME VALUE UNIT AIM
row() {
    if [ "$2" -lt "$4" ]; then held=held; else held=MISSED failed=1; fi
    printf '%-34s %8s %-3s (aim: under %s) %s\n' "$1" "$2" "$3" "$4" "$held"
}

# report NAME ARGUMENT...: how long it takes, the slowest of `status` meanwhile, the controller's peak of memory.
report() {
    name=$1
    shift
    echo 5 >"/proc/$controller/clear_refs" # the peak begins anew
    cpu_before=$(cpu_ms)
    begun=$(now_ms)
    ask report large "$@" >"$lab/report.out" &
    asked=$!
    slowest=0
    asks=0
    while kill -0 "$asked" 2>/dev/null; do
        before=$(now_ms)
        ask status large >"$lab/status.out" || fail "status fails meanwhile"
        took=$(($(now_ms) - before))
        [ "$took" -le "$slowest" ] || slowest=$took
        asks=$((asks + 1))
        sleep 0.05
    done
    wait "$asked" || fail "report $*"
    row "report $name, $(wc -c <"$lab/report.out") bytes" $(($(now_ms) - begun)) ms 10000
    printf '%-34s %8s ms\n' "  CPU time of the controller" $(($(cpu_ms) - cpu_before)) # what others do does not change it
    row "  controller's peak" $(($(peak_kib) * 1024 / 1000000)) MB 200
    row "  slowest of $asks status meanwhile" "$slowest" ms 100
}
slowest=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    before=$(now_ms)
    ask status large >"$lab/status.out"
    took=$(($(now_ms) - before))
    [ "$took" -le "$slowest" ] || slowest=$took
    sleep 0.05
done
printf '%-34s %8s ms\n' "slowest of 20 status before" "$slowest" # what the machine itself makes of it
report "as text"
report "as JSON" --json
begun=$(now_ms)
ask status >"$lab/status.out"
row "status of $(($(wc -l <"$lab/status.out") - 1)) jobs" $(($(now_ms) - begun)) ms 500
exit "$failed"
