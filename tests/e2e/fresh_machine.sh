#!/bin/sh
# `make demo` and `make test` on a machine that has only Debian 12's base system, git and make: once as root,
# once as a user with sudo, each in a debootstrap chroot of its own. Takes some minutes and about 4 GB.
#   [FRESH_AS=root|user] tests/e2e/fresh_machine.sh [demo|test ...]     (default: both, demo test)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" -eq 0 ] || exec sudo "$0" "$@"
goals=${*:-demo test}
command -v debootstrap >/dev/null || { echo "fresh_machine: needs debootstrap (make check-all installs it)" >&2; exit 1; }
work=$(mktemp -d /var/tmp/splitbench-fresh.XXXXXX)
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || { echo "fresh_machine: no Debian 12 source is configured here" >&2; exit 1; }

finish() {
    status=$?
    rm -rf --one-file-system "$work"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

echo "base system"
debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$work/base" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail -5 "$work/debootstrap.log"; exit 1; }
cp /etc/resolv.conf "$work/base/etc/" 2>/dev/null || :
echo "127.0.0.1 localhost $(hostname)" >"$work/base/etc/hosts"

# machine NAME USER: a copy of the base, and in it, in namespaces that end with it, the two commands.
machine() {
    name=$1 user=$2
    dir=$work/$name
    cp -a "$work/base" "$dir"
    if [ "$user" != root ]; then
        chroot "$dir" sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends sudo >/dev/null 2>&1
            useradd -m -s /bin/sh $user && echo '$user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$user"
    fi
    home=$(chroot "$dir" sh -c "getent passwd $user" | cut -d: -f6)
    git clone -q "$root" "$dir$home/splitbench"
    chroot "$dir" chown -R "$user:" "$home/splitbench"
    for goal in $goals; do
        echo "$name: make $goal"
        # Own mounts and process ids: whatever is left running ends with the namespace.
        unshare --mount --pid --fork --kill-child sh -eu -c '
            dir=$1 user=$2 home=$3 goal=$4
            mount --bind "$dir" "$dir" # a root that is a mount, as on a machine: ip netns exec needs one
            mount -t proc proc "$dir/proc"
            mount --rbind /sys "$dir/sys"
            mount --rbind /dev "$dir/dev"
            mount -t tmpfs tmpfs "$dir/run"
            chroot "$dir" setpriv --reuid "$user" --regid "$user" --init-groups \
                env -i HOME="$home" USER="$user" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                LANG=C.UTF-8 TERM=dumb sh -c "cd \"$home/splitbench\" && make $goal" </dev/null
        ' sh "$dir" "$user" "$home" "$goal" || { echo "$name: make $goal failed"; exit 1; }
    done
    rm -rf --one-file-system "$dir"
}

for who in ${FRESH_AS:-root user}; do
    case $who in
    root) machine root root ;;
    user) machine user ada ;;
    *) echo "fresh_machine: FRESH_AS takes root and user, not $who" >&2; exit 2 ;;
    esac
done
echo "fresh machine: passed as ${FRESH_AS:-root and as a user with sudo}"
