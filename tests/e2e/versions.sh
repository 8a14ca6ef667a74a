#!/bin/sh
# --version: the first line is for scripts; below it stands every library that the program links, by its own
# account, and no other.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
version=$(cat "$root/proto/VERSION")

# What --version calls a library of the dynamic section. What gcc itself adds has no line.
named() {
    case $1 in
    libnng.*) echo nng ;;
    libprotobuf-c.*) echo protobuf-c ;;
    libsqlite3.*) echo SQLite ;;
    libuv.*) echo libuv ;;
    liburing.*) echo liburing ;;
    libssl.* | libcrypto.*) echo OpenSSL ;;
    libcjson.*) echo cJSON ;;
    libz.*) echo zlib ;;
    libc.*) echo glibc ;;
    libm.* | libpthread.* | libdl.* | ld-linux* | libgcc_s.* | libasan.* | libubsan.* | libtsan.*) ;;
    *) echo "$1" ;;
    esac
}

for program in splitbench splitbench-agent splitbench-load; do
    "$bin/$program" --version >"$lab/said" || fail "$program --version"
    [ "$(head -n 1 "$lab/said")" = "$program $version" ] || fail "$program: the first line is $(head -n 1 "$lab/said")"
    # The TLS of nng is nng's own, not ours.
    sed -n '2,$s/^  \(.*\) [^ ]*$/\1/p' "$lab/said" | sed 's/ before$//' | grep -vx 'Mbed TLS' | sort >"$lab/told"
    for library in $(readelf -d "$bin/$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do named "$library"; done |
        sort -u >"$lab/linked"
    [ -s "$lab/linked" ] || fail "$program links nothing"
    cmp -s "$lab/told" "$lab/linked" || fail "$program: told and linked differ: $(diff "$lab/told" "$lab/linked")"
done

say "every program tells what it links"
