#!/bin/sh
# No circle of files by calls: where A uses what B defines, B uses nothing of A's, not even through others.
# Reads the symbols of object files, so it sees what the compiler saw; what goes through a pointer to a function is no use.
#   check_circles.sh OBJECTS FOLDER...     for example: check_circles.sh build common proto agent controller
# OBJECTS is where the tree was built. Prints each circle with the symbols that make it, and fails when there is one.
set -eu
[ $# -ge 2 ] || { sed -n '2,5s/^# *//p' "$0" >&2; exit 2; }
command -v nm >/dev/null || { echo "circles: needs nm" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "$1"
shift
# What was built of a file that is no longer there says nothing.
objects=$(find "$@" -name '*.o' | sort | while read -r o; do [ ! -f "$source/${o%.o}.c" ] || echo "$o"; done)
[ -n "$objects" ] || { echo "circles: no object files in $*: build first" >&2; exit 2; }

# shellcheck disable=SC2086  # a list of paths without blanks
nm -A -g $objects | awk '
# "folder/file.o:[address] TYPE symbol"
{
    file = $1
    sub(/\.o:.*/, "", file)
    symbol = $NF
    if ($(NF - 1) == "U") {
        uses[++use_count] = file " " symbol
    } else if (symbol != "main") {
        home[symbol] = file
    }
}

# Every file that can be reached from `from`.
function walk(from, start,    n, i, next_files) {
    n = split(edges[from], next_files, " ")
    for (i = 1; i <= n; i++)
        if (!((start, next_files[i]) in reach)) {
            reach[start, next_files[i]] = 1
            walk(next_files[i], start)
        }
}

function in_one_circle(a, b) {
    return ((a, b) in reach) && ((b, a) in reach)
}

function print_circle(a,    i, j, b, c) {
    print "circles: these files use each other:"
    for (i = 1; i <= file_count; i++)
        for (j = 1; j <= file_count; j++) {
            b = files[i]
            c = files[j]
            if (((b, c) in by) && in_one_circle(a, b) && in_one_circle(a, c))
                print "  " b " -> " c ":" by[b, c]
            if (in_one_circle(a, b))
                told[b] = 1
        }
}

END {
    for (i = 1; i <= use_count; i++) {
        split(uses[i], part, " ")
        a = part[1]
        b = home[part[2]]
        if (b == "" || b == a)
            continue
        if (!((a, b) in by))
            edges[a] = edges[a] " " b
        by[a, b] = by[a, b] " " part[2]
        if (!(a in known)) {
            known[a] = 1
            files[++file_count] = a
        }
    }
    for (i = 1; i <= file_count; i++)
        walk(files[i], files[i])
    for (i = 1; i <= file_count; i++)
        if (((files[i], files[i]) in reach) && !(files[i] in told)) {
            print_circle(files[i])
            bad = 1
        }
    exit bad
}' >&2
