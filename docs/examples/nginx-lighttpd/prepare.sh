#!/bin/sh
# Makes run/ for one server: its configuration, its temporary directory, and the two files both serve.
#   prepare.sh nginx|lighttpd ADDRESS PORT
set -eu
server=$1
address=$2
port=$3
cd "$(dirname "$0")"
umask 022
mkdir -p run/www run/temp

case $address in
*:*) address="[$address]" ;; # IPv6
esac

# Started by root, nginx gives its worker to another user, who may not read this directory; lighttpd stays
# what it is. Both are to be alike.
user=
[ "$(id -u)" -ne 0 ] || user='user root;'
sed -e "s/@ADDRESS@/$address/; s/@PORT@/$port/; s/@USER@/$user/" "$server.conf.in" >"run/$server.conf"

line='splitbench compares servers on one hundred characters a line, again and again, until there are enough.'
printf '%.100s\n' "$line$line" >run/www/small.txt
awk -v line="$line$line" 'BEGIN { line = substr(line, 1, 99); for (i = 0; i < 1024; i++) print line }' >run/www/large.txt
