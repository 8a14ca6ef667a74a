#!/bin/sh
# Runs every fuzzer for a while, from its corpus. What is found lies in BUILD_DIR/fuzz.
#   tests/fuzz/run.sh BUILD_DIR SECONDS
set -u
build=$1
seconds=$2
failed=0
for fuzzer in "$build"/fuzz/fuzz_*; do
    name=$(basename "$fuzzer")
    [ -x "$fuzzer" ] && [ -f "tests/fuzz/$name.c" ] || continue
    corpus=tests/fuzz/corpus/${name#fuzz_}
    grown=$build/fuzz/${name#fuzz_}.corpus # new inputs stay out of the tree
    log=$build/fuzz/$name.log
    mkdir -p "$grown"
    if "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$build/fuzz/$name-" "$grown" "$corpus" >"$log" 2>&1; then
        runs=$(awk '/number_of_executed_units/ { print $2 }' "$log")
        printf '  ok    %-28s %s runs in %s s\n' "$name" "$runs" "$seconds"
    else
        failed=$((failed + 1))
        printf '  FAIL  %-28s (%s)\n' "$name" "$log"
        tail -n 30 "$log" | sed 's/^/        /'
    fi
done
[ "$failed" -eq 0 ]
