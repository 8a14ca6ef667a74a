#!/bin/sh
# The demo: two real web servers, two routes, two rounds, on this machine. About a minute.
#   docs/examples/demo.sh BUILD_BIN
set -eu
cd "$(dirname "$0")/../.."
bin=$1
echo "The schedule (splitbench plan):"
"$bin/splitbench" plan docs/examples/nginx-lighttpd.json
echo
echo "The run (splitbench run --local):"
exec "$bin/splitbench" run --local docs/examples/nginx-lighttpd.json
