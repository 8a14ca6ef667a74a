#!/bin/sh
# splitbench-load against TLS servers that are right, or wrong in exactly one respect: what it says of each, by
# phase and cause, in words, and by its exit status; the accounts balanced, and in agreement with what the server
# saw; the same on both back-ends.
set -eu
. "$(dirname "$0")/../support/lab.sh"
lab_begin
. "$(dirname "$0")/../support/load_lab.sh"

tls=$lab/tls
mkdir "$tls"
"$tools/tool_tls" "$tls" >"$tls/ports" &
lab_pids="$lab_pids $!"
lab_until 20 grep -q '^ready' "$tls/ports" || fail "the servers do not start"

port_of() { sed -n "s/^$1 //p" "$tls/ports"; }

# What the server saw since it was last asked; it ends its connections.
books=$lab/books.json
write_books() {
    curl -fsS --max-time 60 "http://127.0.0.1:$(port_of control)/$mode" >"$books" || fail "no books of $mode"
}

# An instrumented program gets little done in a tenth of a second: it has longer windows, and may hold more.
moment=100ms period=1s long=3s held_max=45000000
case $bin in *-address*|*-thread*) moment=400ms period=6s long=20s held_max=100000000000 ;; esac

# run MODE HOST EXPRESSIONS OPTIONS...: one run, of a moment where the options do not say otherwise.
run() {
    mode=$1 host=$2 expressions=$3
    shift 3
    status=0
    check "$expressions" -- "https://$host:$(port_of "$mode")/${path:-$mode}" -c 4 -t 2 -d $moment --ca "$tls/ca.pem" "$@"
}

# What holds of every run in which all went well. A hand-shake that the end of the run comes upon may be over for
# one side alone.
path=
all_well='samples == {} and a["ok"] > 0
abs(n["full"] - r["handshake_ns"]["count"]) <= r["connections"]
abs(n["resumed"] - r["handshake_resumed_ns"]["count"]) <= r["connections"]
sum(t["connections"] for t in r["tls"]) == r["handshake_ns"]["count"] + r["handshake_resumed_ns"]["count"]
n["requests"] == r["totals"]["requests_sent"]'

# one_case MODE HOST OPTIONS OUTCOME SAMPLE EXIT BESIDES: a line of the table below.
one_case() {
    expectations=$all_well
    [ "$4" = ok ] || expectations="set(samples) == {'$4'} and \"$5\" in samples['$4']"
    # shellcheck disable=SC2086  # a list of words
    run "$1" "$2" "$expectations
${7:-True}" $3
    [ $status -eq "$6" ] || fail "$backend: $1 $3: exit status $status instead of $6"
}

v4=127.0.0.1
cert="--cert $tls/client.pem --key $tls/client.key"
cat >"$lab/cases" <<CASES
# MODE           | HOST      | OPTIONS                     | OUTCOME                | SAMPLE                      |EXIT| BESIDES

ok               | localhost |                             | ok                     |                             | 0 | n["name"] == "localhost" and n["offered"] == "http/1.1"
ok               | $v4       |                             | ok                     |                             | 0 | n["name"] == "" and n["version"] == r["tls"][0]["version"] == "TLSv1.3"
ok               | $v4       | --server-name localhost.    | ok                     |                             | 0 | n["name"] == "localhost"
ok               | $v4       | --server-name a.lab.test    | ok                     |                             | 0 | n["name"] == "a.lab.test"
ok               | $v4       | --server-name a.b.lab.test  | tls wrong_name         | hostname mismatch           | 3 |
ok               | $v4       | --server-name lab.test      | tls wrong_name         | hostname mismatch           | 3 |
ok               | $v4       | --tls-max 1.2               | ok                     |                             | 0 | n["version"] == r["tls"][0]["version"] == "TLSv1.2"
ok               | $v4       | --tls-min 1.3               | ok                     |                             | 0 | n["version"] == r["tls"][0]["version"] == "TLSv1.3"
ok               | $v4       | --tls-groups P-384          | ok                     |                             | 0 | n["group"] == "secp384r1" and r["tls"][0]["group"] == "P-384"
ok               | $v4       | --tls-ciphers TLS_AES_256_GCM_SHA384 | ok            |                             | 0 | n["cipher"] == r["tls"][0]["suite"] == "TLS_AES_256_GCM_SHA384"
ok               | $v4       | --tls-ciphers ECDHE-ECDSA-AES256-GCM-SHA384 | ok     |                             | 0 | n["version"] == "TLSv1.2" and n["cipher"] == "ECDHE-ECDSA-AES256-GCM-SHA384"
rsa              | $v4       | --tls-max 1.2               | ok                     |                             | 0 |
rsa              | $v4       | --tls-min 1.3               | ok                     |                             | 0 |
p384-only        | $v4       |                             | ok                     |                             | 0 | n["version"] == "TLSv1.3" and n["group"] == "secp384r1"
no-alpn          | $v4       |                             | ok                     |                             | 0 |
drips            | $v4       | --tls-max 1.2               | ok                     |                             | 0 |
drips            | $v4       | --tls-min 1.3               | ok                     |                             | 0 |
small-records    | $v4       |                             | ok                     |                             | 0 |
updates-keys     | $v4       |                             | ok                     |                             | 0 |
name-warning     | $v4       |                             | ok                     |                             | 0 | n["name"] == ""
chain            | $v4       |                             | ok                     |                             | 0 |

tls13            | $v4       |                             | ok                     |                             | 0 | n["version"] == "TLSv1.3"
tls13            | $v4       | --tls-max 1.2               | tls version            | no TLS version that we      | 3 |
tls12            | $v4       |                             | ok                     |                             | 0 | n["version"] == "TLSv1.2"
tls12            | $v4       | --tls-min 1.3               | tls version            | no TLS version that we      | 3 |
tls11            | $v4       |                             | tls version            | no TLS version that we      | 3 |
tls11-anyway     | $v4       |                             | tls version            | not one that we offer       | 3 |
alert-protocol-version | $v4 |                             | tls version            | no TLS version that we      | 3 |
psk-only         | $v4       |                             | tls cipher             | no cipher suite             | 3 |
ccm8-only        | $v4       |                             | tls cipher             | no cipher suite             | 3 |
chacha-only      | $v4       |                             | ok                     |                             | 0 | n["cipher"] == "TLS_CHACHA20_POLY1305_SHA256"
chacha-only      | $v4       | --tls-ciphers TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256 | tls cipher | no cipher suite | 3 |
chacha-only      | $v4       | --tls-ciphers ECDHE-ECDSA-AES128-GCM-SHA256 | tls cipher | no cipher suite         | 3 |
x25519-only      | $v4       | --tls-groups P-256 --tls-min 1.3 | tls cipher        | no cipher suite, group      | 3 |
x25519-only      | $v4       | --tls-groups P-256 --tls-max 1.2 | tls cipher        | no cipher suite, group      | 3 |
alert-handshake-failure | $v4 |                            | tls cipher             | no cipher suite             | 3 |
alert-insufficient-security | $v4 |                        | tls cipher             | stronger                    | 3 |

wants-certificate | $v4      | --tls-max 1.2               | tls certificate_wanted | wants a client certificate  | 3 | n["requests"] == 0
wants-certificate | $v4      | --tls-min 1.3               | tls certificate_wanted | wants a client certificate  | 3 | n["requests"] == 0
wants-certificate | $v4      | --tls-max 1.2 $cert         | ok                     |                             | 0 | n["certificate"] == "a client of the tests"
wants-certificate | $v4      | --tls-min 1.3 $cert         | ok                     |                             | 0 | n["certificate"] == "a client of the tests"
wants-certificate | $v4      | --tls-max 1.2 --cert $tls/foreign-client.pem --key $tls/foreign-client.key | tls certificate_wanted | refuses our certificate: unknown CA | 3 |
wants-certificate | $v4      | --tls-min 1.3 --cert $tls/foreign-client.pem --key $tls/foreign-client.key | tls certificate_wanted | refuses our certificate: unknown CA | 3 |
wants-certificate | $v4      | --tls-max 1.2 --cert $tls/old-client.pem --key $tls/old-client.key | tls certificate_wanted | refuses our certificate: certificate expired | 3 |
wants-certificate | $v4      | --tls-min 1.3 --cert $tls/old-client.pem --key $tls/old-client.key | tls certificate_wanted | refuses our certificate: certificate expired | 3 |
asks-certificate | $v4       | --tls-max 1.2               | ok                     |                             | 0 | n["certificate"] == ""
asks-certificate | $v4       | --tls-min 1.3               | ok                     |                             | 0 | n["certificate"] == ""
asks-certificate | $v4       | $cert                       | ok                     |                             | 0 | n["certificate"] == "a client of the tests"
ok               | $v4       | $cert                       | ok                     |                             | 0 | n["certificate"] == ""
asks-late        | $v4       |                             | tls protocol           | late request for a cert     | 3 |
asks-late        | $v4       | $cert                       | ok                     |                             | 0 | n["certificate"] == "a client of the tests"

h2-only          | $v4       |                             | tls protocol           | does not speak http/1.1     | 3 |
h2-anyway        | $v4       | --tls-max 1.2               | tls protocol           | ALPN                        | 3 |
h2-anyway        | $v4       | --tls-min 1.3               | tls protocol           | ALPN                        | 3 |
h2-speaks-first  | $v4       |                             | wait protocol          | not HTTP/1.x                | 1 |
h2-answers       | $v4       |                             | wait protocol          | not HTTP/1.x                | 1 |

expired          | $v4       |                             | tls expired            | certificate has expired     | 3 | n["alert"] == "certificate expired"
not-yet-valid    | $v4       |                             | tls expired            | not yet valid               | 3 | n["alert"] == "bad certificate"
expired-chain    | $v4       |                             | tls expired            | certificate has expired     | 3 | n["alert"] == "certificate expired"
wrong-name       | localhost |                             | tls wrong_name         | hostname mismatch           | 3 | n["alert"] == "bad certificate"
wrong-name       | $v4       |                             | ok                     |                             | 0 |
wrong-address    | $v4       |                             | tls wrong_name         | IP address mismatch         | 3 | n["alert"] == "bad certificate"
wrong-address    | localhost |                             | ok                     |                             | 0 |
address-as-name  | $v4       |                             | tls wrong_name         | IP address mismatch         | 3 | n["alert"] == "bad certificate"
address-in-subject | $v4     |                             | tls wrong_name         | IP address mismatch         | 3 | n["alert"] == "bad certificate"
alert-unrecognized-name | $v4 |                            | tls wrong_name         | SNI                         | 3 |
strict-name      | localhost |                             | ok                     |                             | 0 |
strict-name      | $v4       |                             | tls wrong_name         | SNI                         | 3 |
self-signed      | $v4       |                             | tls verify             | self-signed certificate     | 3 | n["alert"] == "unknown CA"
self-signed      | $v4       | --ca $tls/self-signed.pem   | ok                     |                             | 0 |
stranger         | $v4       |                             | tls verify             | self-signed certificate in  | 3 | n["alert"] == "unknown CA"
hidden-chain     | $v4       |                             | tls verify             | issuer                      | 3 | n["alert"] == "unknown CA"
leaf-as-ca       | $v4       |                             | tls verify             | CA certificate              | 3 | n["alert"] == "unknown CA"
wrong-usage      | $v4       |                             | tls verify             | purpose                     | 3 | n["alert"] == "unsupported certificate"
weak-key         | $v4       |                             | tls verify             | key too weak                | 3 | n["alert"] == "bad certificate"
weak-hash        | $v4       |                             | tls verify             | too weak                    | 3 | n["alert"] == "bad certificate"
ok               | $v4       | --ca $tls/self-signed.pem      | tls verify             | issuer                      | 3 |

closes-hello     | $v4       |                             | tls closed_early       | closed in the hand-shake    | 3 |
closes-flight    | $v4       | --tls-max 1.2               | tls closed_early       | closed in the hand-shake    | 3 |
closes-flight    | $v4       | --tls-min 1.3               | tls closed_early       | closed in the hand-shake    | 3 |
closes-shaken    | $v4       | --tls-max 1.2               | tls closed_early       | closed in the hand-shake    | 3 |
resets-hello     | $v4       |                             | tls reset              | reset                       | 3 |
resets-flight    | $v4       | --tls-max 1.2               | tls reset              | reset                       | 3 |
resets-flight    | $v4       | --tls-min 1.3               | tls reset              | reset                       | 3 |
resets-shaken    | $v4       | --tls-max 1.2               | tls reset              | reset                       | 3 |
stalls-hello     | $v4       | --timeout 100ms             | tls timeout            | timed out                   | 3 |
stalls-flight    | $v4       | --timeout 100ms             | tls timeout            | timed out                   | 3 |
garbage          | $v4       |                             | tls protocol           | not TLS                     | 3 |
ssh              | $v4       |                             | tls protocol           | not TLS                     | 3 |
plain-http       | $v4       |                             | tls protocol           | plain HTTP                  | 3 |
alert-internal-error | $v4   |                             | tls protocol           | internal error              | 3 |

closes-request   | $v4       | --tls-max 1.2               | wait closed_early      | closed the connection       | 1 |
closes-request   | $v4       | --tls-min 1.3               | wait closed_early      | closed the connection       | 1 |
notifies-request | $v4       |                             | wait closed_early      | closed the connection       | 1 |
resets-request   | $v4       |                             | wait reset             | reset                       | 1 |
false-record     | $v4       | --tls-max 1.2               | tls protocol           | bad MAC                     | 3 |
false-record     | $v4       | --tls-min 1.3               | tls protocol           | bad MAC                     | 3 |
false-record-body | $v4      | --tls-max 1.2               | receive protocol       | bad MAC                     | 1 |
false-record-body | $v4      | --tls-min 1.3               | receive protocol       | bad MAC                     | 1 |
long-record      | $v4       |                             | tls protocol           | longer than any             | 3 |
late-alert       | $v4       |                             | tls protocol           | internal error              | 3 |
late-message     | $v4       |                             | tls protocol           | has no place there          | 3 |
truncates-length | $v4       |                             | receive closed_early   | before the whole body       | 1 | r["short_bodies"] > 0
truncates-chunked | $v4      |                             | receive closed_early   | before the whole body       | 1 | r["short_bodies"] > 0
truncates-open   | $v4       | --tls-max 1.2               | receive closed_early   | close_notify                | 1 | r["short_bodies"] > 0
truncates-open   | $v4       | --tls-min 1.3               | receive closed_early   | close_notify                | 1 | r["short_bodies"] > 0
ends-open        | $v4       |                             | ok                     |                             | 0 |
notifies-body    | $v4       |                             | receive closed_early   | before the whole body       | 1 | r["short_bodies"] > 0
resets-body      | $v4       |                             | receive reset          | reset                       | 1 |
truncates-idle   | $v4       |                             | wait stale             | closed the connection       | 0 |
notifies-idle    | $v4       |                             | wait stale             | closed the connection       | 0 |
notifies-alone   | $v4       |                             | wait stale             | closed the connection       | 0 |
renegotiates-before | $v4    |                             | tls protocol           | renegotiation               | 3 | n["renegotiated"] == 0 and n["alert"] == "no renegotiation"
renegotiates-after | $v4     |                             | receive protocol       | renegotiation               | 0 | n["renegotiated"] == 0 and n["alert"] == "no renegotiation"
CASES

sed -e '/^#/d; /^$/d; s/ *| */|/g' "$lab/cases" >"$lab/lines"
every_case() {
    while IFS='|' read -r at host options outcome sample code besides <&3; do
        (one_case "$at" "$host" "$options" "$outcome" "$sample" "$code" "$besides") || bad="$bad $at"
    done 3<"$lab/lines"
}

# Whatever is wrong with a certificate, --insecure takes it; the name is asked for all the same.
insecure() {
    for at in expired wrong-name self-signed hidden-chain leaf-as-ca wrong-usage weak-key weak-hash; do
        run $at localhost "$all_well
n['name'] == 'localhost'" --insecure
    done
}

ipv6() {
    python3 -c "import socket; socket.socket(socket.AF_INET6).bind(('::1', 0))" 2>/dev/null || return 0
    run ok '[::1]' "$all_well
n['name'] == ''"
    run wrong-address '[::1]' 'set(samples) == {"tls wrong_name"} and "IP address mismatch" in samples["tls wrong_name"]'
    [ $status -eq 3 ] || fail "$backend: exit status $status instead of 3"
}

# Servers that end or spoil a connection before its first request are not stormed with new ones.
idle() {
    for at in closes-shaken h2-speaks-first; do
        run $at $v4 'a["failed"] == a["scheduled"] > 0 and n["accepted"] < 100' --tls-min 1.3 -R 2 -d 1s
    done
}

# Sessions are taken up again by whoever gave them, and only when asked for; both sides count the same.
resumption() {
    for version in 1.2 1.3; do
        set -- --tls-min $version --tls-max $version --no-keepalive
        for at in ok session-ids truncates-idle; do
            expectations="$all_well
r['handshake_ns']['count'] == 4 and r['handshake_resumed_ns']['count'] > 4"
            # Its connections end one request after the other.
            [ $at = truncates-idle ] && expectations=$(echo "$expectations" | sed 's/samples == {} and//')
            run $at $v4 "$expectations" "$@" --tls-resume
        done
        run wants-certificate $v4 "$all_well
n['resumed'] > 4 and n['certificate'] == 'a client of the tests'" "$@" --tls-resume --cert "$tls/client.pem" --key "$tls/client.key"
        for at in ignores-tickets no-sessions; do
            run $at $v4 "$all_well
n['resumed'] == 0 and n['full'] > 8" "$@" --tls-resume
        done
        run ok $v4 "$all_well
n['resumed'] == 0 and n['full'] > 8" "$@"
    done
    # With a new connection for each request that is due, hand-shakes end and requests begin in the same round.
    run ok $v4 "$all_well" --no-keepalive -R 1000 -d 1s -c 16
}

# Bodies in both directions are what they were, and take no more memory than they must.
bodies() {
    path=bytes/10000000
    hash=$(python3 -c "
import hashlib
print(hashlib.sha256((bytes(range(251)) * 40000)[:10000000]).hexdigest())")
    for at in tls12 tls13 small-records; do
        run $at $v4 "$all_well
r['bytes']['body'] == 10000000 * a['ok']" --expect-sha256 "$hash" -c 1 -t 1 -d $period
    done
    path=upload
    head -c 16777216 /dev/urandom >"$lab/body"
    sum=$(sha256sum <"$lab/body" | cut -d' ' -f1)
    hash=$(printf %s "$sum" | sha256sum | cut -d' ' -f1) # the server answers with the sum of what it got
    for at in tls12 tls13; do
        run $at $v4 "$all_well
n['body_bytes'] == 16777216 * n['requests'] and r['rss_bytes_max'] <= $held_max" \
            -c 16 -b "@$lab/body" --expect-sha256 "$hash" -d $long --drain 60s --timeout 60s
    done
    # The server reads a megabyte of the body and then no more: what did not leave is not counted as sent. In
    # the window that is one request, which times out; the connection after it has nothing to send.
    run stops-reading $v4 'set(samples) == {"send timeout"} and a["failed"] == 1
1000000 < r["bytes"]["wire_out"] <= n["arrived"] <= r["bytes"]["wire_out"] + 4096' \
        -c 1 -t 1 -b "@$lab/body" -R 1 -d 1s --timeout 300ms
    path=
}

# refuses TEXT OPTIONS...: wrong usage, with these words.
refuses() {
    words=$1
    shift
    code=0
    "$load" -d 100ms "$@" >"$lab/out" 2>&1 || code=$?
    [ $code -eq 2 ] || fail "exit status $code instead of 2: $*"
    grep -qF -- "$words" "$lab/out" || fail "'$words' is not in: $(cat "$lab/out")"
}

refuses_usage() {
    url=https://127.0.0.1:1/
    refuses 'https:// URLs' http://127.0.0.1:1/ --tls-resume
    refuses '--tls-max' $url --tls-min 1.3 --tls-max 1.2
    refuses "no suite 'NONE'" $url --tls-ciphers NONE
    refuses 'a version that --tls-min and --tls-max allow' $url --tls-max 1.2 --tls-ciphers TLS_AES_128_GCM_SHA256
    refuses "no group 'NONE'" $url --tls-groups X25519:NONE
    refuses 'are the same group' $url --tls-groups P-256:X25519:P-256
    refuses 'nothing that could be offered' $url --tls-min 1.3 --tls-groups brainpoolP256r1:brainpoolP384r1
    refuses "$tls/none.pem" $url --ca "$tls/none.pem"
    refuses 'cannot read CA certificates' $url --ca "$tls/client.key"
    refuses 'give --cert FILE' $url --ca "$tls/ca.pem" --key "$tls/client.key"
    refuses 'key values mismatch' $url --ca "$tls/ca.pem" --cert "$tls/client.pem" --key "$tls/foreign-client.key"
    openssl pkey -in "$tls/client.key" -aes256 -passout pass:secret -out "$lab/locked.key"
    refuses 'pass phrase' $url --ca "$tls/ca.pem" --cert "$tls/client.pem" --key "$lab/locked.key" </dev/null
}

refuses_usage
bad=
for backend in $backends; do
    for part in every_case insecure ipv6 idle resumption bodies; do
        echo "-- $backend: $part"
        $part
    done
done
[ -z "$bad" ] || fail "not as expected:$bad"
echo "all as expected"
