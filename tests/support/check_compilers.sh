#!/bin/sh
# Compiles all sources with every gcc and clang in PATH (gcc, gcc-14, clang-19 ...), each once, at the levels at which
# they see different things; a warning is an error. Each has a build directory of its own.
#   tests/support/check_compilers.sh MAKE
set -u
make=$1
cd "$(dirname "$0")/../.." || exit 2

# One line for each compiler: its name. Several names of one program count once.
compilers() {
    (
        IFS=:
        for dir in $PATH; do
            for kind in gcc clang; do
                for file in "$dir/$kind" "$dir/$kind"-[0-9] "$dir/$kind"-[0-9][0-9]; do
                    [ -x "$file" ] && echo "$(readlink -f "$file") $(basename "$file")"
                done
            done
        done
    ) | sort -u -k 1,1 | cut -d' ' -f2
}

found=0
bad=0
for cc in $(compilers); do
    found=$((found + 1))
    for level in O0 O2 O3; do
        o=build-$cc-$level
        mkdir -p "$o"
        if "$make" --no-print-directory -k -j"$(nproc)" O="$o" CC="$cc" CFLAGS=-$level STRICT=1 objects >"$o/log" 2>&1; then
            echo "ok    $cc -$level ($($cc --version | head -n 1))"
        else
            echo "FAIL  $cc -$level ($($cc --version | head -n 1))"
            grep -v '^  CC ' "$o/log"
            bad=1
        fi
    done
done
[ "$found" -gt 0 ] || { echo "check-compilers: no gcc and no clang in PATH" >&2; exit 1; }
exit $bad
