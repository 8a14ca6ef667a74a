#!/bin/sh
# `make demo` and `make test` on machines that have only a Debian release's base system, git and make: each release
# as root and as a user with sudo, each in a debootstrap chroot of its own. A release takes some minutes and 4 GB in
# FRESH_DIR; the second machine of a release downloads nothing.
#   tests/e2e/fresh_machine.sh [bookworm|trixie ...] [demo|test|... ...]    (default: both releases, demo test)
#   FRESH_AS      root, user (default: both, one after the other)
#   FRESH_DIR     where the machines lie for the time of the test (default: /var/tmp)
#   FRESH_CACHE   a directory in which downloaded packages stay for the next time (default: none stay)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$(id -u)" -ne 0 ]; then
    exec sudo env FRESH_AS="${FRESH_AS-}" FRESH_DIR="${FRESH_DIR-}" FRESH_CACHE="${FRESH_CACHE-}" "$0" "$@"
fi
releases=
goals=
for word in "$@"; do
    case $word in
    bookworm | trixie) releases="$releases $word" ;;
    *) goals="$goals $word" ;;
    esac
done
releases=${releases:-bookworm trixie}
goals=${goals:-demo test}
for who in ${FRESH_AS:-root user}; do
    case $who in
    root | user) ;;
    *) echo "fresh_machine: FRESH_AS takes root and user, not $who" >&2; exit 2 ;;
    esac
done
work=$(mktemp -d "${FRESH_DIR:-/var/tmp}/splitbench-fresh.XXXXXX")
fresh=$root/tests/support/fresh_root.sh
export FRESH_CACHE="${FRESH_CACHE:-$work/packages}"

printf '[safe]\n\tdirectory = *\n' >"$work/gitconfig" # a checkout that belongs to whoever called sudo
finish() {
    status=$?
    rm -rf --one-file-system "$work"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

# add_user DIR NAME: somebody with sudo.
add_user() {
    # shellcheck disable=SC2016 # for the inner shell
    "$fresh" enter "$1" sh -eu -c '
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends sudo >/dev/null 2>&1
        useradd -m -s /bin/sh "$1"
        echo "$1 ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$1"' sh "$2"
}

# machine RELEASE USER: a copy of the release's base, and in it the goals, one after the other.
machine() {
    name=$1-$2 user=$2
    dir=$work/$name
    cp -a "$work/$1" "$dir"
    [ "$user" = root ] || add_user "$dir" "$user"
    home=$(chroot "$dir" getent passwd "$user" | cut -d: -f6)
    GIT_CONFIG_GLOBAL=$work/gitconfig git clone -q "$root" "$dir$home/splitbench"
    chroot "$dir" chown -R "$user:" "$home/splitbench"
    for goal in $goals; do
        echo "$name: make $goal"
        # shellcheck disable=SC2016 # for the inner shell
        FRESH_ALONE=1 "$fresh" enter "$dir" setpriv --reuid "$user" --regid "$user" --init-groups \
            env HOME="$home" USER="$user" sh -c 'cd "$HOME/splitbench" && make "$1"' sh "$goal" </dev/null ||
            { echo "$name: make $goal failed"; exit 1; }
    done
    rm -rf --one-file-system "$dir"
}

for release in $releases; do
    echo "$release: base system"
    "$fresh" make "$release" "$work/$release" git,make
    for who in ${FRESH_AS:-root user}; do
        [ "$who" = root ] || who=ada
        machine "$release" "$who"
    done
    rm -rf --one-file-system "${work:?}/$release"
done
echo "fresh machines passed:$(printf ' %s' $releases) as ${FRESH_AS:-root and as a user with sudo}"
