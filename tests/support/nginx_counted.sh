#!/bin/sh
# nginx in the foreground that leaves its own count of requests behind when it is told to stop.
#   nginx_counted.sh COUNT_FILE ADDRESS PORT
# nginx gets a session of its own, so that the count can be read after our SIGTERM and before its end.
set -eu
count=$1
address=$2
port=$3
dir=$(mktemp -d "${TMPDIR:-/tmp}/nginx-counted.XXXXXX")
head -c 1000 /dev/zero | tr '\0' x >"$dir/small.txt"
chmod -R a+rX "$dir"
cat >"$dir/nginx.conf" <<CONF
daemon off;
worker_processes 1;
pid $dir/nginx.pid;
error_log stderr warn;
$([ "$(id -u)" -eq 0 ] && echo 'user root;')
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 100000000;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    server {
        listen $address:$port;
        root $dir;
        location = /count { stub_status; }
    }
}
CONF
setsid nginx -c "$dir/nginx.conf" -e stderr &
nginx=$!
finish() {
    # The reading itself is one request.
    read=$(curl -fsS --max-time 5 "http://$address:$port/count" | awk 'NR == 3 { print $3 - 1 }')
    echo "$read" >>"$count"
    kill -QUIT "$nginx" 2>/dev/null || :
    wait "$nginx" || :
    rm -rf "$dir"
    exit 0
}
trap finish TERM INT
wait "$nginx"
