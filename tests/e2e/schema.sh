#!/bin/sh
# docs/experiment.schema.json and the program accept the same keys, and both accept the examples. The schema and the
# tables of docs/experiment-file.md are as `make docs` writes them.
set -eu
cd "$(dirname "$0")/../.."
keys=$SPLITBENCH_TOOLS/tool_keys
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$keys" schema >"$new"
diff -u docs/experiment.schema.json "$new"
"$keys" tables docs/experiment-file.md >"$new"
diff -u docs/experiment-file.md "$new"
python3 tests/support/schema_check.py "$SPLITBENCH_BIN/splitbench" docs/experiment.schema.json \
    tests/fuzz/corpus/experiment/everything docs/examples/*.json
