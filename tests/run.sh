#!/bin/sh
# Runs the tests of a build and ends with one line that says how it went.
#   tests/run.sh BUILD_DIR [all | unit [NAME]]     unit: no end-to-end script; NAME: that test alone
set -u
build=$1
which=${2:-all}
wanted=${3:-}
cd "$(dirname "$0")/.." || exit 2
SPLITBENCH_BIN=$PWD/$build/bin
SPLITBENCH_TOOLS=$PWD/$build/tests
TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp:${TSAN_OPTIONS-}"
export SPLITBENCH_BIN SPLITBENCH_TOOLS TSAN_OPTIONS
logs=$build/test-logs
mkdir -p "$logs"
passed=0
failed=0

# run NAME PROGRAM
run() {
    started=$(date +%s)
    if timeout 600 "$2" >"$logs/$1.log" 2>&1; then
        passed=$((passed + 1))
        printf '  ok    %-28s %4d s\n' "$1" $(($(date +%s) - started))
    else
        failed=$((failed + 1))
        printf '  FAIL  %-28s (%s)\n' "$1" "$logs/$1.log"
        tail -n 40 "$logs/$1.log" | sed 's/^/        /'
    fi
}

# is_wanted NAME: whether to run it. Two scripts download a whole base system, and run only when asked for by name.
is_wanted() {
    case $1 in fresh_machine | mixed_releases) [ "$1" = "$wanted" ]; return ;; esac
    [ -z "$wanted" ] || [ "$1" = "$wanted" ]
}

for source in tests/unit/test_*.c tests/sim/sim_*.c; do
    name=$(basename "$source" .c)
    is_wanted "$name" && run "$name" "$build/tests/$name"
done
if [ "$which" = all ]; then
    for script in tests/e2e/*.sh; do
        name=$(basename "$script" .sh)
        is_wanted "$name" && run "$name" "$script"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
