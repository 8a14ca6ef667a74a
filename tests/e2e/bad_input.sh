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

# ---- experiment files: tests/e2e/bad_input/NAME.json, and in `expected` all that is said about each ---------
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
        grep -qF -- "$file:$place: $text" "$work/err" || wrong "$name: not said: $place: $text"
    done <"$work/expected"
done
[ "$tried" -ge 40 ] || wrong "only $tried broken files"
for name in $(cut -f 1 "$bad/expected" | grep -v '^#' | sort -u); do
    [ -e "$bad/$name.json" ] || wrong "$name: expected, but there is no such file"
done
echo "$tried broken experiment files"
[ "$failed" -eq 0 ]
