#!/bin/sh
# The man pages: each has its date, and what is printed as it stands (examples) fits a terminal of 80 columns
# behind the 7 blanks that man puts before it.
set -eu
cd "$(dirname "$0")/../.."
awk '
    function wrong(what) { printf "FAIL: %s:%d: %s: %s\n", FILENAME, FNR, what, $0; failed = 1 }
    FNR == 1 && ($1 != ".TH" || $4 !~ /^20[0-9][0-9]-[01][0-9]-[0-3][0-9]$/) { wrong(".TH has no date") }
    FNR == 1 { filling = 1; pages++ }
    /^\.nf/ { filling = 0; next }
    /^\.fi/ { filling = 1; next }
    { line = $0; gsub(/\\\\|\\e|\\-/, "x", line) }
    !filling && length(line) > 73 { wrong("over 80 columns") }
    END { if (pages < 3) { print "FAIL: " pages " man pages, not 3"; failed = 1 }; exit failed }
' docs/*.1
echo "man pages: dated, and no wider than a terminal"
