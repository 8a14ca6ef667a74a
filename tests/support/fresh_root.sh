#!/bin/sh
# The root of a Debian release that need not be this one, as root:
#   fresh_root.sh make RELEASE DIR [PACKAGE,...]   from nothing, with debootstrap; the output is in DIR.log
#   fresh_root.sh enter DIR COMMAND...             runs the command in it, with mounts that nobody else sees
# A command that is entered keeps its process id, and its network namespace, its environment is a clean one.
#   FRESH_CACHE   a directory of downloaded packages: a second root of a release downloads nothing
#   FRESH_BINDS   "HERE:THERE ...": directories of this system that are seen inside
#   FRESH_ALONE   set: process ids of its own too, so whatever is left running ends with the command
set -eu
verb=$1
shift
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

fail() {
    echo "fresh_root: $*" >&2
    exit 1
}

# The archive that apt uses here; every release lies in it.
mirror() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' | awk '$2 == "Debian" && $3 == "main" { print $1; exit }'
}

case $verb in
make)
    release=$1 dir=$2 packages=${3-}
    command -v debootstrap >/dev/null || fail "needs debootstrap: deploy/deps.sh check installs it"
    [ -e "/usr/share/debootstrap/scripts/$release" ] || fail "debootstrap does not know $release"
    archive=$(mirror)
    [ -n "$archive" ] || fail "apt has no Debian archive here"
    [ -z "${FRESH_CACHE-}" ] || mkdir -p "$FRESH_CACHE/$release"
    debootstrap --variant=minbase ${FRESH_CACHE:+"--cache-dir=$FRESH_CACHE/$release"} \
        --include="ca-certificates${packages:+,$packages}" "$release" "$dir" "$archive" >"$dir.log" 2>&1 ||
        fail "debootstrap: $(tail -n 5 "$dir.log")"
    cp /etc/resolv.conf "$dir/etc/" 2>/dev/null || :
    echo "127.0.0.1 localhost $(hostname)" >"$dir/etc/hosts"
    "$0" enter "$dir" apt-get -qq update >>"$dir.log" 2>&1 || fail "apt-get update: $(tail -n 5 "$dir.log")"
    ;;
enter)
    dir=$1
    shift
    cache=
    [ -z "${FRESH_CACHE-}" ] || cache=$FRESH_CACHE/$(. "$dir/etc/os-release" && echo "$VERSION_CODENAME")
    # shellcheck disable=SC2016 # for the inner shell
    exec unshare --mount ${FRESH_ALONE:+--pid --fork --kill-child} sh -eu -c '
        dir=$1 cache=$2 binds=$3 path=$4
        shift 4
        mount --bind "$dir" "$dir" # a root that is a mount, as on a machine: ip netns exec needs one
        mount -t proc proc "$dir/proc"
        mount --rbind /sys "$dir/sys"
        mount --rbind /dev "$dir/dev"
        mount -t tmpfs tmpfs "$dir/run"
        [ -z "$cache" ] || { mkdir -p "$cache" && mount --bind "$cache" "$dir/var/cache/apt/archives"; }
        for pair in $binds; do
            mkdir -p "$dir${pair#*:}"
            mount --rbind "${pair%%:*}" "$dir${pair#*:}"
        done
        exec chroot "$dir" env -i HOME=/root USER=root PATH="$path" LANG=C.UTF-8 TERM=dumb "$@"
    ' sh "$dir" "$cache" "${FRESH_BINDS-}" "$path" "$@"
    ;;
*)
    fail "make or enter, not $verb"
    ;;
esac
