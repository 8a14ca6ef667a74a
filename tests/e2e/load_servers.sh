#!/bin/sh
# splitbench-load against real servers: nginx, lighttpd, Apache, Python's http.server, node, haproxy in front of
# nginx; over TCP, IPv6, a unix socket and TLS. nginx's own log agrees with the accounts to the request.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

PATH=$PATH:/usr/sbin:/sbin
www=$lab/www
mkdir "$www"
echo "hello, world" >"$www/index.html"
head -c 100000 /dev/zero >"$www/large.bin"
chmod -R a+rX "$lab"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$lab/key.pem" -out "$lab/cert.pem" -days 2 \
    -subj /CN=localhost -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" 2>/dev/null

nginx_port=$(free_port)
tls_port=$(free_port)
ipv6=
python3 -c "import socket; socket.socket(socket.AF_INET6).bind(('::1', 0))" 2>/dev/null && ipv6="listen [::1]:$nginx_port;"
cat >"$lab/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $lab/nginx.pid; error_log $lab/nginx.err;
$([ "$(id -u)" -eq 0 ] && echo 'user root;')
events { worker_connections 4096; }
http {
    access_log $lab/access.log; keepalive_requests 100000000;
    client_body_temp_path $lab/t1; proxy_temp_path $lab/t2; fastcgi_temp_path $lab/t3; uwsgi_temp_path $lab/t4; scgi_temp_path $lab/t5;
    server { listen 127.0.0.1:$nginx_port; $ipv6 listen unix:$lab/nginx.sock; root $www;
             listen 127.0.0.1:$tls_port ssl; ssl_certificate $lab/cert.pem; ssl_certificate_key $lab/key.pem;
             location /post { return 200 "taken"; } location /chunked/ { alias $www/; ssi on; ssi_types *; }
             location /moved { return 301 /; } }
}
CONF
start nginx -c "$lab/nginx.conf" -e "$lab/nginx.err"
await_port "$nginx_port"

# exercise NAME PORT: what every server must do.
exercise() {
    name=$1
    at=http://127.0.0.1:$2
    echo "-- $name"
    check 'a["ok"] > 0 and a["failed"] == 0 and r["bytes"]["body"] == 13 * a["ok"]' -- "$at/index.html" -c 4 -d 300ms --warmup 100ms
    check 'a["ok"] > 0 and a["failed"] == 0 and r["bytes"]["body"] == 100000 * a["ok"]' -- "$at/large.bin" -c 2 -d 300ms --expect-length 100000
    check 'a["ok"] > 0 and a["failed"] == 0 and r["bytes"]["body"] == 0' -- "$at/index.html" -m HEAD -c 2 -d 200ms
    check 'a["ok"] > 0 and a["failed"] == 0' -- "$at/index.html" -c 2 -d 200ms --no-keepalive
    check 'a["ok"] == 0 and errors.keys() == {"receive status"} and r["status"]["404"] == a["failed"] > 0' -- "$at/none" -c 2 -d 200ms
    check 'a["ok"] + a["in_flight"] + a["never_sent"] == a["scheduled"] >= 49 and a["failed"] == 0' -- "$at/index.html" -c 4 -R 100 -d 500ms
}

# logged LINES_BEFORE: nginx has logged as many requests since then as we have sent.
logged() {
    sent=$(python3 -c "import json; print(json.load(open('$lab/result.json'))['totals']['requests_sent'])")
    lab_until 5 [ $(($(wc -l <"$lab/access.log") - $1)) -ge "$sent" ] || :
    seen=$(($(wc -l <"$lab/access.log") - $1))
    [ "$seen" -eq "$sent" ] || fail "nginx logged $seen requests, $sent were sent"
}

lighttpd_port=$(free_port)
cat >"$lab/lighttpd.conf" <<CONF
server.document-root = "$www"
server.port = $lighttpd_port
server.bind = "127.0.0.1"
server.max-keep-alive-requests = 65535
mimetype.assign = (".html" => "text/html")
CONF
start lighttpd -D -f "$lab/lighttpd.conf"

apache_port=$(free_port)
cat >"$lab/apache.conf" <<CONF
ServerRoot $lab
ServerName localhost
PidFile $lab/apache.pid
ErrorLog $lab/apache.err
Listen 127.0.0.1:$apache_port
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
MaxKeepAliveRequests 0
DocumentRoot $www
<Directory $www>
    Require all granted
</Directory>
CONF
[ "$(id -u)" -ne 0 ] || printf 'User www-data\nGroup www-data\n' >>"$lab/apache.conf"
start apache2 -X -f "$lab/apache.conf"

python_port=$(free_port)
start python3 -m http.server --protocol HTTP/1.1 --bind 127.0.0.1 --directory "$www" "$python_port"

haproxy_port=$(free_port)
cat >"$lab/haproxy.cfg" <<CONF
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
listen front
    bind 127.0.0.1:$haproxy_port
    server back 127.0.0.1:$nginx_port
CONF
start haproxy -db -f "$lab/haproxy.cfg"

node_port=
if command -v node >/dev/null; then
    node_port=$(free_port)
    cat >"$lab/server.js" <<JS
const fs = require("fs"), www = "$www";
require("http").createServer((q, s) => {
    const f = www + q.url;
    if (!fs.existsSync(f)) { s.writeHead(404); return s.end("no"); }
    s.end(fs.readFileSync(f)); // chunked for what is written without a length
}).listen($node_port, "127.0.0.1");
JS
    start node "$lab/server.js"
fi

for backend in $backends; do
    for server in "nginx $nginx_port" "lighttpd $lighttpd_port" "apache2 $apache_port" "http.server $python_port" \
        "haproxy $haproxy_port" ${node_port:+"node $node_port"}; do
        # shellcheck disable=SC2086  # name and port
        set -- $server
        await_port "$2"
        exercise "$1" "$2"
    done

    echo "-- nginx counts with us"
    at=http://127.0.0.1:$nginx_port
    before=$(wc -l <"$lab/access.log")
    check 'a["failed"] == 0' -- "$at/" -c 10 -t 2 -d 500ms --warmup 200ms
    logged "$before"
    before=$(wc -l <"$lab/access.log")
    check 'a["failed"] == 0' -- "$at/" -c 10 -d 500ms --no-keepalive
    logged "$before"
    before=$(wc -l <"$lab/access.log")
    check 'a["failed"] == 0' -- "$at/" -c 10 -d 500ms -R 500 --arrivals poisson
    logged "$before"
    check 'a["ok"] == 0 and r["status"]["301"] == a["failed"]' -- "$at/moved" -c 2 -d 100ms
    check 'a["failed"] == 0' -- "$at/moved" -c 2 -d 100ms --expect-status 301
    check 'a["failed"] == 0 and a["ok"] > 0' -- "$at/chunked/index.html" -c 2 -d 200ms
    check 'a["failed"] == 0 and a["ok"] > 0' -- "$at/post" -c 2 -d 200ms -b "some text" -H "Content-Type: text/plain"

    echo "-- other ways in"
    [ -z "$ipv6" ] || check 'a["failed"] == 0 and a["ok"] > 0' -- "http://[::1]:$nginx_port/" -c 2 -d 200ms
    check 'a["failed"] == 0 and a["ok"] > 0' -- "http://localhost:$nginx_port/" -c 4 -d 200ms
    check 'a["failed"] == 0 and a["ok"] > 0' -- "http://any.name/" -c 2 -d 200ms --unix-socket "$lab/nginx.sock"
    check 'a["failed"] == 0 and a["ok"] > 0' -- "$at/" -c 4 -d 200ms --source 127.0.0.5 --source 127.0.0.6 --ramp 50ms
    grep -q '^127.0.0.6 ' "$lab/access.log" || fail "the second source address was not used"

    tls=https://localhost:$tls_port
    check 'a["failed"] == 0 and a["ok"] > 0 and r["handshake_ns"]["count"] == 4' -- "$tls/" -c 4 -d 300ms --ca "$lab/cert.pem"
    check 'a["failed"] == 0 and a["ok"] > 0' -- "https://127.0.0.1:$tls_port/large.bin" -c 2 -d 300ms --ca "$lab/cert.pem" --expect-length 100000
    check 'a["failed"] == 0 and a["ok"] > 0' -- "$tls/" -c 2 -d 300ms --insecure --no-keepalive
    check 'a["failed"] == 0 and a["ok"] > 0' -- "$tls/post" -c 2 -d 300ms --insecure -b "@$www/large.bin"
    check 'r["warmup_errors"][0]["phase"] == "tls" and r["warmup_errors"][0]["cause"] == "verify"' -- "$tls/" -c 1 -d 100ms
    check 'r["warmup_errors"][0]["cause"] == "wrong_name"' -- "$tls/" -c 1 -d 100ms --ca "$lab/cert.pem" --server-name other.name
    check 'r["warmup_errors"][0]["phase"] == "tls"' -- "https://127.0.0.1:$nginx_port/" -c 1 -d 100ms --insecure
done
echo "all as expected"
