#!/bin/sh
# splitbench-load beside other generators: the same server on one CPU, the generators in turn on another, in
# alternating pairs; medians of the ratios of requests per CPU-second. Uses what it finds of wrk, h2load, ab,
# bombardier, hey, vegeta, oha and autocannon, and says what is missing.
#   load_compare.sh [PAIRS [SECONDS]]      default: 5 pairs of 3 s
# Then memory, scaling by threads, pacing, and the truth of latencies. Takes some ten minutes.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_build build/tests/tool_faulty
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"
pairs=${1:-5}
seconds=${2:-3}

PATH=$PATH:/usr/sbin:/sbin
for program in nginx openssl taskset; do
    command -v $program >/dev/null || fail "needs $program, which is not here (make deps installs it)"
done
cpus=$(nproc)
[ "$cpus" -ge 2 ] || fail "needs two CPUs: one for the server, one for the generator"
port=$(free_port)
mkdir "$lab/www"
head -c 100000 /dev/urandom >"$lab/www/large.bin"
chmod -R a+rX "$lab"
# A server that lets sessions go on, and one that never does: wrk, given the chance, resumes without being asked.
tls_port=$(free_port)
fresh_port=$(free_port)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$lab/key.pem" -out "$lab/cert.pem" -days 2 \
    -subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null
cat >"$lab/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $lab/nginx.pid; error_log $lab/nginx.err; worker_rlimit_nofile 40000;
$([ "$(id -u)" -eq 0 ] && echo 'user root;')
events { worker_connections 20000; }
http {
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path $lab/t1; proxy_temp_path $lab/t2; fastcgi_temp_path $lab/t3; uwsgi_temp_path $lab/t4; scgi_temp_path $lab/t5;
    ssl_certificate $lab/cert.pem; ssl_certificate_key $lab/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
    server { listen 127.0.0.1:$port backlog=8192; root $lab/www; location = /small { return 200 "hello, world\n"; } }
    server { listen 127.0.0.1:$tls_port ssl backlog=8192; root $lab/www; location = /small { return 200 "hello, world\n"; } }
    server { listen 127.0.0.1:$fresh_port ssl backlog=8192; ssl_session_tickets off; ssl_session_cache off;
             location = /small { return 200 "hello, world\n"; } }
}
CONF
start taskset -c 0 nginx -c "$lab/nginx.conf" -e "$lab/nginx.err"
await_port "$port"
await_port "$tls_port"
await_port "$fresh_port"
ulimit -n 20000 2>/dev/null || :
at=http://127.0.0.1:$port

python3 "$here/load_compare.py" cpu "$load" "$at/small" 100 "$seconds" "$pairs"
python3 "$here/load_compare.py" cpu "$load" "$at/small" 500 "$seconds" "$pairs" wrk
python3 "$here/load_compare.py" cpu "$load" "$at/small" 10 "$seconds" "$pairs" wrk
python3 "$here/load_compare.py" cpu "$load" "$at/large.bin" 10 "$seconds" "$pairs" wrk

# The same suite for both, TLS 1.3; ours checks the certificate, wrk does not.
suite="--tls-min 1.3 --tls-ciphers TLS_AES_256_GCM_SHA384 --ca $lab/cert.pem"
echo
echo "https: requests on kept connections, then a new hand-shake for each request: full ones, resumed ones"
# shellcheck disable=SC2086  # a list of words
for c in 10 100; do
    python3 "$here/load_compare.py" https "$load" "https://localhost:$tls_port/small" $c "$seconds" "$pairs" keep $suite
done
# shellcheck disable=SC2086
python3 "$here/load_compare.py" https "$load" "https://localhost:$tls_port/large.bin" 10 "$seconds" "$pairs" keep $suite
# shellcheck disable=SC2086
python3 "$here/load_compare.py" https "$load" "https://localhost:$fresh_port/small" 100 "$seconds" "$pairs" close $suite
# shellcheck disable=SC2086
python3 "$here/load_compare.py" https "$load" "https://localhost:$tls_port/small" 100 "$seconds" "$pairs" close --tls-resume $suite

echo
echo "CPU of a full hand-shake with 1, 2 and 8 threads, on all CPUs"
# shellcheck disable=SC2086
python3 "$here/load_compare.py" handshake_threads "$load" "https://localhost:$fresh_port/small" 64 "$seconds" "$pairs" $suite

echo
echo "back-ends, requests per CPU-second of io_uring by libuv (100 connections, small)"
python3 "$here/load_compare.py" backends "$load" "$at/small" 100 "$seconds" "$pairs"

echo
echo "floor: CPU of the generator per request against its own null server; system is the kernel's part"
"$load" --calibrate -c 100 --cpus 1

echo
echo "memory"
for c in 100 10000; do
    "$load" "$at/small" -c $c -d 3s --cpus 1 -o json --ramp 500ms >"$lab/result.json"
    python3 -c "import json; r = json.load(open('$lab/result.json')); print('  %5d connections %7.1f MB, %d failed' % ($c, r['rss_bytes_max'] / 1e6, r['accounts']['failed']))"
done
"$load" "$at/small" -c 100 -d 60s --cpus 1 -o json >"$lab/result.json" &
pid=$!
sleep 5
first=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
sleep 53
last=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
wait $pid
echo "  over 60 s: $first kB after 5 s, $last kB after 58 s"

echo
if [ "$cpus" -ge 4 ]; then
    python3 "$here/load_compare.py" threads "$load" "$at/small" 100 "$seconds" "$pairs"
else
    echo "two threads by one: not measured, $cpus CPUs are too few (the server needs two of its own)"
fi

# What is shown from here on is the generator, not the machine's other business: real-time where allowed.
realtime=
chrt -f 1 true 2>/dev/null && realtime="chrt -f 1"

echo
echo "pacing, even arrivals${realtime:+ (server and generator under $realtime)}"
mkfifo "$lab/port"
$realtime taskset -c 0 "$tools/tool_faulty" >"$lab/port" &
lab_pids="$lab_pids $!"
read -r _ paced_port _ _ <"$lab/port"
for rate in 1000 10000; do
    for backend in $backends; do
        $realtime taskset -c 1 "$load" "http://127.0.0.1:$paced_port/ok" -c 100 -R $rate -d 5s --warmup 1s --backend "$backend" -o json >"$lab/result.json"
        python3 "$here/load_compare.py" pacing "$lab/result.json"
    done
done

echo
"$here/load_truth.sh"
