#!/bin/sh
# Do other HdrHistogram readers find the same percentiles in our log as we report? Tries the reference Java
# library (Debian: libhdrhistogram-java) and hdr-histogram-js (npm, found through NODE_PATH), and says which of
# them it could not find. Fails when one disagrees. (Python's port is not asked: it rounds ranks differently.)
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_build build/tests/tool_faulty
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

mkfifo "$lab/port"
"$tools/tool_faulty" >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ port _ _ <"$lab/port"
printf '%s\n' ok ok ok ok ok ok delay/1 delay/3 delay/20 chunked >"$lab/paths"
"$load" "http://127.0.0.1:$port/{{line:$lab/paths}}" --template -c 20 -t 2 -d 3500ms --report-every 500ms --hlog "$lab/x.hlog" \
    -o json >"$lab/result.json" 2>/dev/null

# same READER: its standard input has "percent value" lines, and "count N".
same() {
    python3 - "$1" "$lab/result.json" <<PY
import json, sys
name, result = sys.argv[1], json.load(open(sys.argv[2]))["latency_ns"]
theirs = dict(l.split() for l in """$2""".split("\n") if l.strip())
keys = {"50": "p50", "75": "p75", "90": "p90", "95": "p95", "99": "p99", "99.9": "p99_9", "99.99": "p99_99"}
bad = 0
if int(theirs["count"]) != result["count"]:
    bad += 1
    print(f"  count: {theirs['count']}, we say {result['count']}")
for percent, key in keys.items():
    seen, ours = int(float(theirs[percent])), result[key]
    # They give the top of the slot that holds the maximum; we never go above the maximum itself.
    ok = seen == ours or (ours == result["max"] and ours <= seen <= ours * 1.001)
    bad += not ok
    if not ok:
        print(f"  {percent} %: {seen}, we say {ours}")
print(f"{name}: {'DIFFERS' if bad else 'the same percentiles'}")
sys.exit(bad != 0)
PY
}

jar=/usr/share/java/hdrhistogram.jar
if command -v java >/dev/null && [ -r $jar ]; then
    cat >"$lab/ReadLog.java" <<'JAVA'
import org.HdrHistogram.*;
public class ReadLog {
    public static void main(String[] a) throws Exception {
        HistogramLogReader reader = new HistogramLogReader(a[0]);
        Histogram sum = new Histogram(3600000000000L, 3);
        for (EncodableHistogram h; (h = reader.nextIntervalHistogram()) != null;)
            sum.add((Histogram) h);
        System.out.println("count " + sum.getTotalCount());
        for (double p : new double[] {50, 75, 90, 95, 99, 99.9, 99.99})
            System.out.println((p == Math.rint(p) ? String.valueOf((long) p) : String.valueOf(p)) + " " + sum.getValueAtPercentile(p));
    }
}
JAVA
    same "Java HdrHistogram" "$(java -cp $jar "$lab/ReadLog.java" "$lab/x.hlog")"
else
    echo "Java HdrHistogram: not here (libhdrhistogram-java)"
fi

if command -v node >/dev/null && node -e 'require("hdr-histogram-js")' 2>/dev/null; then
    cat >"$lab/read.js" <<'JS'
const hdr = require("hdr-histogram-js"), fs = require("fs");
const reader = new hdr.HistogramLogReader(fs.readFileSync(process.argv[2], "utf8"));
const sum = hdr.build({ bitBucketSize: 64, highestTrackableValue: 3600000000000, numberOfSignificantValueDigits: 3 });
for (let h; (h = reader.nextIntervalHistogram()) != null; ) sum.add(h);
console.log("count", sum.totalCount);
for (const p of [50, 75, 90, 95, 99, 99.9, 99.99]) console.log(p, sum.getValueAtPercentile(p));
JS
    same "hdr-histogram-js" "$(node "$lab/read.js" "$lab/x.hlog")"
else
    echo "hdr-histogram-js: not here (npm install hdr-histogram-js, NODE_PATH)"
fi
