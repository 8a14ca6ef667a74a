#!/bin/sh
# The include rules of the tree, as greps: common <- proto <- {agent, controller} <- tests, and each
# foreign library behind one door.
set -u
cd "$(dirname "$0")/../.." || exit 2
bad=0

# refuse WHAT PATTERN PATHS...: no line of the paths may match.
refuse() {
    what=$1
    pattern=$2
    shift 2
    if git grep -nE "$pattern" -- "$@"; then
        echo "layers: $what" >&2
        bad=1
    fi
}

refuse 'common/ includes nothing above it' '#include "(proto|agent|controller|tests)/' 'common/*.[ch]'
refuse 'proto/ includes only common/' '#include "(agent|controller|tests)/' 'proto/*.[ch]'
refuse 'agent/ never includes controller/' '#include "(controller|tests)/' 'agent/*.[ch]'
refuse 'controller/ never includes agent/' '#include "(agent|tests)/' 'controller/*.[ch]'
refuse 'agent/load/ stands alone on common/' '#include "(proto/|agent/[a-km-z])' 'agent/load/*.[ch]'
refuse 'only proto/ sees nng and generated types' 'pb-c\.h|<nng/' '*.[ch]' ':!proto/' ':!tests/support/nng_reproducers.c'
refuse 'only common/json.c sees cJSON' '<cjson/' '*.[ch]' ':!common/json.c'
refuse 'only controller/store/ sees SQLite' '<sqlite3|"controller/store/store_db\.h"' '*.[ch]' ':!controller/store/*'
refuse 'Mbed TLS belongs to nng alone' '<mbedtls/' '*.[ch]'
refuse 'OpenSSL is for hashes, identity and the TLS of the generator' '<openssl/' 'common/*.[ch]' 'proto/*.[ch]' 'agent/*.[ch]' \
    'controller/*.[ch]' ':!common/sha256.[ch]' ':!common/base64.c' ':!common/libraries.c' ':!proto/identity/identity*.c' ':!proto/identity/x509*.[ch]' \
    ':!agent/load/tls*.c'
refuse 'common/ and proto/ never log' '\blog_(error|warn|info|debug)\(' 'common/*.c' 'proto/*.[ch]' ':!common/log.c'
exit $bad
