#!/bin/sh
# What splitbench needs to be built, shown, tested and checked.
#   deploy/deps.sh SET...            installs the missing Debian packages of the sets, as root or with sudo
#   deploy/deps.sh --missing SET...  installs nothing: names all that is missing and the command that brings it
# SET is build, demo, test or check. Says nothing when all is there. CC and CPPFLAGS are heeded. Exit code: 0, 1 when
# something is missing and was not installed, 2 for a mistake in the command line.
#
# Packages are installed by what dpkg says; --missing goes by what the compiler and PATH find, so a library of one's
# own in /usr/local is as good, and a system without dpkg gets an answer too.
set -eu

# Set, what must be found (a header, a program, or - when only dpkg can tell), and its package in Debian 12 and 13.
needs() {
    cat <<'NEEDS'
build cc                      build-essential
build stdio.h                 build-essential
build pkg-config              pkg-config
build protoc                  protobuf-compiler
build protoc-gen-c            protobuf-c-compiler
build nng/nng.h               libnng-dev
build protobuf-c/protobuf-c.h libprotobuf-c-dev
build uv.h                    libuv1-dev
build liburing.h              liburing-dev
build cjson/cJSON.h           libcjson-dev
build sqlite3.h               libsqlite3-dev
build openssl/ssl.h           libssl-dev
build zlib.h                  zlib1g-dev
demo  nginx                   nginx-light
demo  lighttpd                lighttpd
demo  ip                      iproute2
test  cmocka.h                libcmocka-dev
test  curl                    curl
test  openssl                 openssl
test  sqlite3                 sqlite3
test  ps                      procps
test  python3                 python3
test  apache2                 apache2-bin
test  haproxy                 haproxy
check clang                   clang
check -                       libclang-rt-dev
check clang-format            clang-format
check clang-tidy              clang-tidy
check cppcheck                cppcheck
check debootstrap             debootstrap
check wrk                     wrk
check ab                      apache2-utils
check h2load                  nghttp2-client
NEEDS
}

# column N SET...: that column of the sets' lines.
column() {
    n=$1
    shift
    needs | awk -v n="$n" -v sets=" $* " 'index(sets, " " $1 " ") { print $n }'
}

# has "PROGRAM [ARGUMENT...]"
has() { PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "${1%% *}" >/dev/null 2>&1; }

# Of the headers on standard input, those that are not there: as the compiler sees it, or by their usual places when
# there is none. OpenSSL before 3 is as good as missing.
missing_headers() {
    if ! has "$cc"; then
        while read -r header; do
            set -- /usr/include/"$header" /usr/include/*/"$header" /usr/local/include/"$header"
            for file in "$@"; do [ -e "$file" ] && continue 2; done
            echo "$header"
        done
        return
    fi
    sed 's/.*/#if !__has_include(<&>)\nMISSING &\n#endif/
        s/has_include(<openssl\/ssl.h>)/has_include(<openssl\/opensslv.h>) || OPENSSL_VERSION_MAJOR < 3/
        1i #if __has_include(<openssl/opensslv.h>)\n#include <openssl/opensslv.h>\n#endif' |
        # shellcheck disable=SC2086 # flags are words
        $cc ${CPPFLAGS-} -E -P -xc - 2>/dev/null | sed -n 's/^MISSING //p'
}

# All that is missing of the sets, by what can be found.
missing_things() {
    column 2 "$@" | grep '\.h$' | missing_headers
    for program in $(column 2 "$@" | grep -v '\.h$'); do
        case $program in
        -) ;;
        cc) has "$cc" || echo cc ;;
        *) has "$program" || echo "$program" ;;
        esac
    done
}

# The packages that dpkg does not have, of the sets.
missing_packages() {
    column 3 "$@" | sort -u >"$work/wanted"
    # shellcheck disable=SC2046 # one package a line
    dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(cat "$work/wanted") 2>/dev/null |
        sed -n 's/ installed$//p' | sort >"$work/have"
    comm -23 "$work/wanted" "$work/have"
}

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }

is_known() { (. /etc/os-release && case $ID-$VERSION_ID in debian-12 | debian-13) ;; *) exit 1 ;; esac) 2>/dev/null; }

system_name() { (. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-another system}") || echo "another system"; }

# explain SET...: what is missing, in words; returns 1 when something is.
explain() {
    things=$(missing_things "$@")
    [ -n "$things" ] || return 0
    packages=
    echo "Missing here, with the Debian package that has it:"
    for thing in $things; do
        package=$(needs | awk -v thing="$thing" '$2 == thing { print $3 }')
        case " $packages " in *" $package "*) ;; *) packages="$packages $package" ;; esac
        name=$thing
        [ "$thing" = cc ] && name="$cc (a C compiler)"
        [ "$thing" = openssl/ssl.h ] && name="openssl/ssl.h (of OpenSSL 3)"
        printf '  %-30s %s\n' "$name" "$package"
    done
    if ! is_debian; then
        echo "This is $(system_name): README.md has the names of the packages under 'Other systems'."
    elif [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; then
        echo "To install it:  deploy/deps.sh $*"
        echo "or, as root:    apt-get install --no-install-recommends$packages"
    else
        echo "To install it, somebody who is root here has to say:"
        echo "  apt-get install --no-install-recommends$packages"
    fi
    return 1
}

# A server's package must not start its own service: ports and cores belong to the benchmark. The policy file says so
# to the packages' scripts, and goes when we are done.
install_packages() {
    as_root=
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap '$as_root rm -f $policy; rm -rf "$work"' EXIT
        printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
        $as_root chmod 755 $policy
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

only_say=
[ "${1-}" != --missing ] || { only_say=yes; shift; }
[ $# -gt 0 ] || { echo "deps.sh: name the sets: build, demo, test, check" >&2; exit 2; }
for set_name in "$@"; do
    case $set_name in
    build | demo | test | check) ;;
    *) echo "deps.sh: unknown set '$set_name': use build, demo, test or check" >&2; exit 2 ;;
    esac
done
cc=${CC:-cc}

if [ -n "$only_say" ] || ! is_debian; then
    explain "$@" >&2
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=$(missing_packages "$@")
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "deps.sh: needs root or sudo. Somebody who is root here has to say:" >&2
    echo "  apt-get install --no-install-recommends" $packages >&2
    exit 1
fi
echo "installing:" $packages
# shellcheck disable=SC2086 # a list of words
install_packages $packages && exit
echo "deps.sh: apt-get could not install them; what it says is above" >&2
is_known || echo "These are names of Debian 12 and 13, and this is $(system_name): see README.md, 'Other systems'." >&2
exit 1
