#!/bin/sh
# docs/experiment.schema.json and the program accept the same keys, and both accept the examples.
set -eu
cd "$(dirname "$0")/../.."
exec python3 tests/support/schema_check.py "$SPLITBENCH_BIN/splitbench" docs/experiment.schema.json \
    tests/fuzz/corpus/experiment/everything docs/examples/*.json
