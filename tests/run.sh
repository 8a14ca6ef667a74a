#!/bin/sh
# Runs every test of a build and ends with one line that says how it went.
#   tests/run.sh BUILD_DIR [unit]
set -u
build=$1
only=${2:-all}
cd "$(dirname "$0")/.." || exit 2
SPLITBENCH_BIN=$PWD/$build/bin
SPLITBENCH_TOOLS=$PWD/$build/tests
TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp:${TSAN_OPTIONS-}"
export SPLITBENCH_BIN SPLITBENCH_TOOLS TSAN_OPTIONS
logs=$build/test-logs
mkdir -p "$logs"
passed=0
failed=0

run() {
    name=$1
    shift
    started=$(date +%s)
    if timeout 600 "$@" >"$logs/$name.log" 2>&1; then
        passed=$((passed + 1))
        printf '  ok    %-28s %4d s\n' "$name" $(($(date +%s) - started))
    else
        failed=$((failed + 1))
        printf '  FAIL  %-28s (%s)\n' "$name" "$logs/$name.log"
        tail -n 40 "$logs/$name.log" | sed 's/^/        /'
    fi
}

for program in "$build"/tests/test_* "$build"/tests/sim_*; do
    [ -x "$program" ] && [ -f "tests/unit/$(basename "$program").c" -o -f "tests/sim/$(basename "$program").c" ] &&
        run "$(basename "$program")" "$program"
done
if [ "$only" = all ]; then
    for script in tests/e2e/*.sh; do
        case $(basename "$script" .sh) in
        fresh_machine | mixed_releases) continue ;; # these download a whole base system: acceptance runs of their own
        esac
        [ -x "$script" ] && run "$(basename "$script" .sh)" "$script"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
