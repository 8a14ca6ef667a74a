#!/bin/sh
# Installs what is missing of the named sets of Debian packages. Prints nothing when all is there.
#   deploy/deps.sh build|test|check ...
set -eu

build='build-essential pkg-config libnng-dev libprotobuf-c-dev protobuf-c-compiler libuv1-dev liburing-dev
       libcjson-dev libsqlite3-dev libmbedtls-dev libssl-dev zlib1g-dev nginx-light lighttpd iproute2'
test='libcmocka-dev curl openssl sqlite3 procps python3 apache2-bin haproxy'
check='clang libclang-rt-14-dev clang-format clang-tidy cppcheck debootstrap wrk apache2-utils nghttp2-client'

wanted=
for set_name in "$@"; do
    case $set_name in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    check) wanted="$wanted $check" ;;
    *) echo "deps.sh: unknown set '$set_name': use build, test or check" >&2; exit 2 ;;
    esac
done

missing=
for package in $wanted; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "deps.sh: needs root or sudo to install:$missing" >&2; exit 3; }
    as_root=sudo
fi
echo "installing:$missing"
# A server package must not start its own service: ports and cores belong to the benchmark. The policy
# file says so to the packages' scripts, and goes when we are done.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap '$as_root rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
    $as_root chmod 755 $policy
fi
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086  # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
