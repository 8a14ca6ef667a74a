#!/bin/sh
# make check-layers refuses what it is there to refuse: a scratch tree that keeps every rule, then the same tree with
# one fault at a time.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
tree=$lab/tree

# file PATH: into the tree, from standard input; a header gets its guard.
file() {
    mkdir -p "$tree/$(dirname "$1")"
    guard=$(echo "$1" | tr a-z/. A-Z__)
    case $1 in
    *.h) { printf '#ifndef %s\n#define %s\n' "$guard" "$guard" && cat && echo '#endif'; } >"$tree/$1" ;;
    *) cat >"$tree/$1" ;;
    esac
}

check() { "$root/tests/support/check_layers.py" "$tree" >"$lab/said" 2>&1; }

# refused "PATH:LINE: WORDS": the tree breaks this rule, and no other.
refused() {
    if check; then fail "not refused: $1"; fi
    [ "$(wc -l <"$lab/said")" -eq 1 ] && grep -qF -- "$1" "$lab/said" || fail "wanted '$1', said: $(cat "$lab/said")"
    say "refused: $1"
    sound
}

# A tree that keeps the rules.
sound() {
    rm -rf "$tree"
    file common/a.h <<'C'
/* See docs/x.md, common/a, common/ and proto/w*.c; b.c is told by its last name, common/a.h() is no file. */
C
    file common/json.c </dev/null
    file docs/x.md </dev/null
    file proto/wire.c <<'C'
#include "common/a.h"
#include <nng/nng.h>
const char *name = "/* proto/gone.c */";
C
    file agent/b.c <<'C'
#include "agent/load/c.h"
#include "proto/wire.h"
C
    file proto/wire.h </dev/null
    file agent/load/c.h <<'C'
#include "common/a.h"
C
    file common/figure_list.h <<'C'
#define LIST(X) \
    X(SHORT_BODIES, short_bodies, 11) \
    X(own_cpu_cores, 1)
C
    echo '#define A "short_bodies" /* the old store */' | file controller/store/store_schema.c
    file tests/e2e/x.sh <<'SH'
echo "see tests/e2e/gone.sh"
SH
    check || fail "a sound tree is refused: $(cat "$lab/said")"
}

sound
echo '#include "tests/x.h"' | file common/up.c
refused 'common/up.c:1: common/ includes nothing above it'
printf '\n#include "controller/x.h"\n' | file proto/up.c
refused 'proto/up.c:2: proto/ includes only common/'
echo '#include "controller/x.h"' | file agent/x.c
refused 'agent/x.c:1: agent/ never includes controller/'
echo '#include "agent/x.h"' | file controller/x.c
refused 'controller/x.c:1: controller/ never includes agent/'
echo '#include "proto/wire.h"' | file agent/load/x.c
refused 'agent/load/x.c:1: agent/load/ stands alone on common/'
echo '#include "agent/probe/x.h"' | file agent/load/x.c
refused 'agent/load/x.c:1: agent/load/ stands alone on common/'
echo '#include <nng/nng.h>' | file tests/unit/x.c
refused 'tests/unit/x.c:1: only proto/ sees nng and generated types'
echo '#include <cjson/cJSON.h>' | file common/json_get.c
refused 'common/json_get.c:1: only common/json.c sees cJSON'
echo '#include <sqlite3.h>' | file controller/report/x.c
refused 'controller/report/x.c:1: only controller/store/ sees SQLite'
echo '#include <mbedtls/ssl.h>' | file proto/link/x.c
refused 'proto/link/x.c:1: Mbed TLS belongs to nng alone'
echo '#include <openssl/ssl.h>' | file agent/uplink/x.c
refused 'agent/uplink/x.c:1: OpenSSL is for hashes'
echo 'void f(void) { log_error("x"); }' | file proto/x.c
refused 'proto/x.c:1: common/ and proto/ never log'

echo 'const char *a = "short_bodies";' | file controller/report/x.c
refused 'controller/report/x.c:1: a figure is one row of common/figure_list.h: "short_bodies"'
echo 'const char *a = "a INTEGER, own_cpu_cores REAL";' | file controller/store/x.c
refused 'controller/store/x.c:1: a figure is one row of common/figure_list.h'
echo 'uint64_t short_bodies;' | file proto/x.c
refused 'proto/x.c:1: a figure is one row of common/figure_list.h'

printf '#ifndef COMMON_C_H\n#define COMMON_C_H\n#endif\n' >"$tree/common/b.h"
refused 'common/b.h:1: the guard of a header is its path, at its top: COMMON_B_H'
printf '#ifndef COMMON_B_H\n#define COMMON_C_H\n#endif\n' >"$tree/common/b.h"
refused 'common/b.h:1: the guard of a header is its path'

printf '/*\n * As common/gone.c does.\n */\n' | file common/x.c
refused 'common/x.c:2: a comment names a file that is not there: common/gone.c'
echo 'int n; // gone.c' | file common/x.c
refused 'common/x.c:1: a comment names a file that is not there: gone.c'
echo '/* For proto/v*.c */' | file proto/x.h
refused 'proto/x.h:3: a comment names a file that is not there: proto/v*.c'
printf 'true\ntrue %s as tests/e2e/gone.sh\n' '#' | file tests/e2e/y.sh
refused 'tests/e2e/y.sh:2: a comment names a file that is not there: tests/e2e/gone.sh'
echo '# as docs/gone.md says' | file Makefile
refused 'Makefile:1: a comment names a file that is not there: docs/gone.md'

echo '#include "agent/task/x.h"' | file agent/probe/x.c
echo '#include "agent/probe/x.h"' | file agent/uplink/x.c
echo '#include "agent/uplink/x.h"' | file agent/task/x.c
refused 'agent/probe includes agent/task (agent/probe/x.c:1), agent/uplink (agent/task/x.c:1), agent/probe (agent/uplink/x.c:1)'

# By calls, as object files say; they have the names of two files of ours, since what has no source does not count.
circles() { "$root/tests/support/check_circles.sh" "$lab/objects" common >"$lab/said" 2>&1; }
mkdir -p "$lab/objects/common"
cd "$lab/objects/common"
compile() { cc -xc -c -o "$1.o" -; }
echo 'void json_two(void); void json_one(void) { json_two(); }' | compile json
echo 'void json_two(void) { }' | compile path
circles || fail "two files, one of which uses the other, are refused: $(cat "$lab/said")"
echo 'void json_one(void); void json_two(void) { json_one(); }' | compile path
if circles; then fail "not refused: a circle by calls"; fi
grep -q 'common/json -> common/path: json_two' "$lab/said" || fail "$(cat "$lab/said")"
say "refused: files that use each other"
