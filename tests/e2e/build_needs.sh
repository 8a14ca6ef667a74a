#!/bin/sh
# A machine that lacks something: make and deploy/deps.sh name all of it at once, with the packages and the command,
# before a compiler says anything. Without the headers (a compiler that sees none but the C library's), programs and
# the compiler itself.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
cd "$root"

# says TEXT: it is in what the last command said.
says() { grep -qF -- "$1" "$lab/said" || fail "not said: $1: $(cat "$lab/said")"; }
# refuse COMMAND...: fails, and its words are in $lab/said.
refuse() {
    if "$@" >"$lab/said" 2>&1; then fail "succeeds: $*"; fi
}

say "nothing is missing, nothing is said"
deploy/deps.sh --missing build demo test >"$lab/said" 2>&1 || fail "$(cat "$lab/said")"
[ ! -s "$lab/said" ] || fail "$(cat "$lab/said")"

say "headers"
mkdir "$lab/include"
for name in stdio.h features.h bits stdc-predef.h sys gnu; do
    for dir in /usr/include /usr/include/*-linux-*; do
        [ ! -e "$dir/$name" ] || ln -sfn "$dir/$name" "$lab/include/$name"
    done
done
poor="cc -nostdinc -isystem $lab/include"
refuse env CC="$poor" deploy/deps.sh --missing build
for name in nng/nng.h protobuf-c/protobuf-c.h uv.h liburing.h cjson/cJSON.h sqlite3.h openssl/ssl.h zlib.h; do says "  $name"; done
for name in libnng-dev libuv1-dev libssl-dev zlib1g-dev; do says " $name"; done
! grep -q 'stdio.h\|pkg-config' "$lab/said" || fail "what is there is said to be missing: $(cat "$lab/said")"
refuse make O="$lab/build" CC="$poor"
says "Missing here"
! grep -q '^  CC\|error:' "$lab/said" || fail "the compiler was asked first: $(cat "$lab/said")"

say "an OpenSSL that is too old"
mkdir "$lab/include/openssl"
: >"$lab/include/openssl/ssl.h"
echo '#define OPENSSL_VERSION_NUMBER 0x1010117fL' >"$lab/include/openssl/opensslv.h"
refuse env CC="$poor" deploy/deps.sh --missing build
says "openssl/ssl.h (of OpenSSL 3)"

say "programs, and the compiler"
mkdir "$lab/path"
for dir in /usr/bin /bin; do
    for file in "$dir"/*; do
        case ${file##*/} in
        pkg-config | pkgconf | protoc | protoc-gen-c | cc) ;;
        *) ln -sf "$file" "$lab/path/" ;;
        esac
    done
done
refuse env PATH="$lab/path" deploy/deps.sh --missing build
for name in "cc (a C compiler)" pkg-config protoc protoc-gen-c build-essential protobuf-compiler; do says "$name"; done
! grep -q 'uv\.h' "$lab/said" || fail "without a compiler, a header that is there is said to be missing: $(cat "$lab/said")"
refuse deploy/deps.sh --missing nonsense
says "use build, demo, test or check"
say "what is missing is named at once"
