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
"$bin/splitbench" run --local docs/examples/nginx-lighttpd.json
echo
echo "Next:"
echo "  $bin/splitbench report --local    the tables again; --json for scripts"
echo "  $bin/splitbench status --local    all runs of this machine"
echo "  $bin/splitbench help              what else there is"
echo "  README.md has a first experiment of your own."
