#!/bin/sh
# make check-mutants on a tree of one file and two tests: what a test asks is noticed, what none asks is named, what
# compiles to nothing else does not count; and a test sees nothing but the copy.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_need_root "$@"
lab_begin
tree=$lab/tree
mkdir -p "$tree/common" "$tree/tests/unit"
cd "$tree"

cat >Makefile <<'MAKE'
test-build: $(O)/tests/test_less $(O)/tests/test_shut_in
$(O)/tests/test_less: $(O)/tests/unit/test_less.o $(O)/common/less.o
$(O)/tests/test_shut_in: $(O)/tests/unit/test_shut_in.o
$(O)/%.o: %.c
	@mkdir -p $(@D)
	cc -I. $(CFLAGS) -c -o $@ $<
$(O)/tests/test_%:
	cc -o $@ $^
	printf '$@: %s\n' $^ >$@.d
MAKE
cat >common/less.h <<'C'
unsigned char is_less(int a, int b);
unsigned steps_to_nothing(unsigned n);
int nobody_asks(int a, int b);
C
# What can be changed: the !=, the 0, the <, the >= and the ==. What stands in comments and strings cannot.
cat >common/less.c <<'C'
#include "common/less.h"
_Static_assert(sizeof "<" != 1, "does not compile when changed");
unsigned char is_less(int a, int b)
{
    int unused = 0;
    (void)unused; /* 0 < 1 */
    return a < b;
}
unsigned steps_to_nothing(unsigned n)
{
    unsigned steps = 5;
    while (n >= 2)
        n -= 2, steps++;
    return steps;
}
int nobody_asks(int a, int b)
{
    return a == b;
}
C
cat >tests/unit/test_less.c <<'C'
#include "common/less.h"
#include <unistd.h>
int main(void)
{
    if (is_less(2, 2) || !is_less(2, 3))
        return 1;
    if (steps_to_nothing(4) != 7)
        pause(); /* one that hangs */
    return 0;
}
C
cat >tests/unit/test_shut_in.c <<'C'
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
/* Neither the disk nor the network nor the processes of the machine are there. */
int main(void)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = 9, .sin_addr.s_addr = inet_addr("192.0.2.1")};
    if (open("/var/tmp/shut_in", O_CREAT | O_WRONLY, 0600) >= 0 || access(getenv("SEEN_OUTSIDE"), F_OK) == 0)
        return 1;
    if (connect(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&there, sizeof there) == 0)
        return 2;
    return kill(atoi(getenv("PID_OUTSIDE")), 0) == 0 ? 3 : 0;
}
C

say "every change"
SEEN_OUTSIDE=$lab/seen PID_OUTSIDE=$$
export SEEN_OUTSIDE PID_OUTSIDE
: >"$SEEN_OUTSIDE"
status=0
"$root/tests/support/check_mutants.py" --jobs 2 >"$lab/said.log" 2>&1 || status=$?
cat "$lab/said.log"
! grep -q 'left out' "$lab/said.log" || fail "a test fails where it is shut in"

say "what was noticed"
# noticed WHO "CHANGE"
noticed() { grep -qE "^  $1 +common/less.c:$2$" "$lab/said.log" || fail "wanted: $1 $2"; }
noticed test_less "7: '<' -> '<='  in: return a < b;"
noticed test_less "12: '>=' -> '>'  in: while .n >= 2."
noticed NOBODY "18: '==' -> '!='  in: return a == b;"
grep -q '^Nothing notices:$' "$lab/said.log"
[ "$(tail -n 1 "$lab/said.log")" = "2 noticed of 3" ] || fail "counted otherwise"
[ "$status" -eq 1 ] || fail "two of three are enough: status $status"
cmp -s common/less.c build-mutants/tree/common/less.c || fail "a change stays in the copy"

say "one file, a seed, a number"
"$root/tests/support/check_mutants.py" --jobs 1 --n 1 --seed 3 common/less.c >"$lab/one.log" 2>&1 || :
"$root/tests/support/check_mutants.py" --jobs 1 --n 1 --seed 3 common/less.c >"$lab/again.log" 2>&1 || :
grep -q '^1 changes, seed 3, 2 tests$' "$lab/one.log" || fail "$(cat "$lab/one.log")"
cmp -s "$lab/one.log" "$lab/again.log" || fail "the same seed, another change"
