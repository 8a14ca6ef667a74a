#include "agent/load/tls_config.h"

#include "common/mem.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

/* What every browser offers first, the cheapest in front: the same on every host, whatever its OpenSSL has
 * for defaults. */
#define SUITES_1_3 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define SUITES_1_2                                                                                           \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"               \
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define GROUPS "X25519:P-256:P-384"

#define SUITE_1_3_PREFIX "TLS_" /* the names of RFC 8446 B.4; OpenSSL's names for older ones have none */
#define NAME_BYTES       64u

static const uint8_t protocols[] = "\x08http/1.1"; /* ALPN, RFC 7301 */

static enum err fail(struct err_detail *d, enum err e, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    (void)err_set(d, e, "TLS: %s: %s", what, reason != NULL ? reason : "refused by OpenSSL");
    ERR_clear_error();
    return e;
}

/* --- trust --- */

static bool directory_has_files(const char *name, size_t len)
{
    char *path = mem_strndup(name, len);
    DIR *dir = opendir(path);
    free(path);
    bool found = false;
    if (dir == NULL)
        return false;
    for (const struct dirent *entry; !found && (entry = readdir(dir)) != NULL;)
        found = entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

/* Of several, with colons between. */
static bool any_has_files(const char *names)
{
    for (const char *at = names;; at++) {
        size_t len = strcspn(at, ":");
        if (directory_has_files(at, len))
            return true;
        at += len;
        if (*at == '\0')
            return false;
    }
}

static const char *place(const char *variable, const char *standard)
{
    const char *set = getenv(variable);
    return set != NULL ? set : standard;
}

/* OpenSSL finds nothing wrong with a store that is not there. */
static bool system_has_trust(void)
{
    return access(place(X509_get_default_cert_file_env(), X509_get_default_cert_file()), R_OK) == 0 ||
           any_has_files(place(X509_get_default_cert_dir_env(), X509_get_default_cert_dir()));
}

/* A file that cannot be opened is named with its reason: OpenSSL's words for it are of little help. A pipe or
 * a device is refused: it may never end, or be readable only once, and certificate and key are read by each
 * thread. */
static enum err check_file(const char *what, const char *path, struct err_detail *d)
{
    struct stat s;
    if (access(path, R_OK) != 0 || stat(path, &s) != 0)
        return err_set(d, err_from_errno(errno), "TLS: cannot read %s %s: %s", what, path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return err_set(d, ERR_INVALID, "TLS: cannot read %s %s: it is not a regular file", what, path);
    return ERR_OK;
}

enum err tls_config_read_trust(struct tls_trust **trust, const struct tls_options *o, struct err_detail *d)
{
    if (o->ca_file == NULL || o->insecure)
        return ERR_OK;
    enum err e = check_file("CA certificates", o->ca_file, d);
    return e == ERR_OK ? tls_trust_read(trust, o->ca_file, d) : e;
}

static enum err load_trust(struct tls_config *c, const struct tls_options *o, struct err_detail *d)
{
    if (o->ca_file != NULL) {
        must(o->trust != NULL);
        c->reader = tls_trust_reader_new(o->trust, c->library, SSL_CTX_get_cert_store(c->context));
        return ERR_OK;
    }
    if (!system_has_trust())
        return err_set(d, ERR_NOT_FOUND,
                       "TLS: this system has no CA certificates: give --ca FILE or --insecure");
    return SSL_CTX_set_default_verify_paths(c->context) == 1
               ? ERR_OK
               : fail(d, ERR_FAILED, "the system's CA certificates cannot be read");
}

/* Whom the server's certificate must name. A dot at the end is of the DNS alone (RFC 6066 3: without it). */
static enum err set_name(struct tls_config *c, const char *name, struct err_detail *d)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(c->context);
    uint8_t ip[16];
    size_t len = strlen(name);
    if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1 ? ERR_OK : fail(d, ERR_INVALID, name);
    len -= len > 1 && name[len - 1] == '.' ? 1 : 0;
    if (len == 0 || len > TLSEXT_MAXLEN_host_name)
        return err_set(d, ERR_INVALID, "--server-name: a name has 1 to %d bytes", TLSEXT_MAXLEN_host_name);
    c->sni = mem_strndup(name, len);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, c->sni, 0) == 1 ? ERR_OK : fail(d, ERR_INVALID, name);
}

/* --- our own certificate --- */

/* A key that needs a pass phrase is refused: nobody is there who could type it. */
static int refuse_password(char *out, int size, int writing, void *unused)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)unused;
    return -1;
}

static enum err load_own(struct tls_config *c, const struct tls_options *o, struct err_detail *d)
{
    const char *key_file = o->key_file != NULL ? o->key_file : o->cert_file;
    if (o->cert_file == NULL)
        return o->key_file == NULL
                   ? ERR_OK
                   : err_set(d, ERR_INVALID, "--key: a key alone proves nothing; give --cert FILE too");
    SSL_CTX_set_default_passwd_cb(c->context, refuse_password);
    enum err e = check_file("the certificate", o->cert_file, d);
    if (e == ERR_OK)
        e = check_file("the key", key_file, d);
    if (e == ERR_OK && SSL_CTX_use_certificate_chain_file(c->context, o->cert_file) != 1)
        e = err_prefix(d, fail(d, ERR_INVALID, o->cert_file), "--cert");
    if (e == ERR_OK && SSL_CTX_use_PrivateKey_file(c->context, key_file, SSL_FILETYPE_PEM) != 1)
        e = err_prefix(d, fail(d, ERR_INVALID, key_file), "--key (PEM, without a pass phrase)");
    if (e == ERR_OK && SSL_CTX_check_private_key(c->context) != 1) { /* one of another kind was taken */
        ERR_clear_error();
        e = err_set(d, ERR_INVALID, "--key: %s is not the key of the certificate %s", key_file, o->cert_file);
    }
    c->has_cert = e == ERR_OK;
    /* Servers may ask for it later, when a path needs it: RFC 8446 4.6.2. */
    SSL_CTX_set_post_handshake_auth(c->context, 1);
    return e;
}

/* --- versions, suites, groups --- */

struct name_list {
    char names[TLS_NAMES_MAX][NAME_BYTES];
    size_t count;
};

static enum err split_names(struct name_list *out, const char *text, const char *option, struct err_detail *d)
{
    out->count = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ":");
        if (len == 0 || len >= NAME_BYTES || out->count == TLS_NAMES_MAX)
            return err_set(d, ERR_INVALID, "%s: '%s' is no list of at most %u names with colons between",
                           option, text, TLS_NAMES_MAX);
        memcpy(out->names[out->count], at, len);
        out->names[out->count++][len] = '\0';
        at += len;
        if (*at == '\0')
            return ERR_OK;
    }
}

static bool is_suite_1_3(const char *name)
{
    return strncmp(name, SUITE_1_3_PREFIX, strlen(SUITE_1_3_PREFIX)) == 0;
}

/* The names of one kind, as OpenSSL wants them. */
static void join_suites(const struct name_list *list, bool of_1_3, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++)
        if (is_suite_1_3(list->names[i]) == of_1_3)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at != 0 ? ":" : "", list->names[i]);
}

static bool is_offered(SSL_CTX *context, const char *name)
{
    const STACK_OF(SSL_CIPHER) *offered = SSL_CTX_get_ciphers(context);
    for (int i = 0; i < sk_SSL_CIPHER_num(offered); i++)
        if (strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(offered, i)), name) == 0)
            return true;
    return false;
}

/* Exactly these are offered: with suites of one version alone, the other version is not. */
static enum err set_suites(SSL_CTX *context, const char *text, struct err_detail *d)
{
    struct name_list list;
    char suites[2][TLS_NAMES_MAX * NAME_BYTES];
    enum err e = split_names(&list, text, "--tls-ciphers", d);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < 2; i++)
        join_suites(&list, i == 1, suites[i], sizeof suites[i]);
    if (suites[0][0] != '\0')
        (void)SSL_CTX_set_cipher_list(context, suites[0]); /* what it does not know shows below */
    (void)SSL_CTX_set_ciphersuites(context, suites[1]);
    ERR_clear_error();
    for (size_t i = 0; i < list.count; i++)
        if (!is_offered(context, list.names[i]))
            return err_set(
                d, ERR_INVALID,
                "--tls-ciphers: OpenSSL here has no suite '%s'; 'openssl ciphers -s -v ALL' lists them",
                list.names[i]);
    if (suites[0][0] == '\0' && SSL_CTX_get_min_proto_version(context) < TLS1_3_VERSION)
        (void)SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    if (suites[1][0] == '\0' && SSL_CTX_get_max_proto_version(context) > TLS1_2_VERSION)
        (void)SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
    if (SSL_CTX_get_min_proto_version(context) > SSL_CTX_get_max_proto_version(context))
        return err_set(d, ERR_INVALID,
                       "--tls-ciphers: no suite of a version that --tls-min and --tls-max allow");
    return ERR_OK;
}

static int nid_of(const char *group)
{
    int nid = EC_curve_nist2nid(group);
    return nid != NID_undef ? nid : OBJ_sn2nid(group);
}

/* Some have two names: P-256 is prime256v1. */
static bool is_same_group(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0 || (nid_of(a) != NID_undef && nid_of(a) == nid_of(b));
}

static enum err set_groups(SSL_CTX *context, const char *text, struct err_detail *d)
{
    struct name_list list;
    enum err e = split_names(&list, text, "--tls-groups", d);
    for (size_t i = 0; e == ERR_OK && i < list.count; i++) {
        const char *name = list.names[i];
        size_t first = 0;
        while (!is_same_group(list.names[first], name))
            first++;
        if (SSL_CTX_set1_groups_list(context, name) != 1)
            e = err_set(d, ERR_INVALID, "--tls-groups: OpenSSL here has no group '%s', like those of %s",
                        name, GROUPS);
        else if (first != i)
            e = err_set(d, ERR_INVALID, "--tls-groups: '%s' and '%s' are the same group: name it once",
                        list.names[first], name);
    }
    ERR_clear_error();
    if (e == ERR_OK && SSL_CTX_set1_groups_list(context, text) != 1)
        e = fail(d, ERR_INVALID, "--tls-groups");
    return e;
}

/* OpenSSL takes versions, suites and groups of which nothing can be offered, such as groups of TLS 1.2 alone
 * where 1.3 is offered, and fails later, with each connection: so one hand-shake is begun here. */
static enum err try_offer(SSL_CTX *context, struct err_detail *d)
{
    SSL *ssl = SSL_new(context);
    must(ssl != NULL);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    bool begun = SSL_get_error(ssl, SSL_connect(ssl)) == SSL_ERROR_WANT_READ;
    enum err e =
        begun ? ERR_OK
              : fail(d, ERR_INVALID, "these versions, suites and groups leave nothing that could be offered");
    SSL_free(ssl);
    return e;
}

static enum err set_offer(SSL_CTX *context, const struct tls_options *o, struct err_detail *d)
{
    static const int versions[] = {[TLS_1_2] = TLS1_2_VERSION, [TLS_1_3] = TLS1_3_VERSION};
    if (o->min > o->max)
        return err_set(d, ERR_INVALID, "--tls-min: 1.3 is above the --tls-max of 1.2");
    if (SSL_CTX_set_min_proto_version(context, versions[o->min]) != 1 ||
        SSL_CTX_set_max_proto_version(context, versions[o->max]) != 1 ||
        SSL_CTX_set_cipher_list(context, SUITES_1_2) != 1 ||
        SSL_CTX_set_ciphersuites(context, SUITES_1_3) != 1 ||
        SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols - 1) != 0)
        return fail(d, ERR_FAILED, "cannot be set up");
    enum err e = o->ciphers != NULL ? set_suites(context, o->ciphers, d) : ERR_OK;
    if (e == ERR_OK)
        e = set_groups(context, o->groups != NULL ? o->groups : GROUPS, d);
    return e == ERR_OK ? try_offer(context, d) : e;
}

bool tls_options_given(const struct tls_options *o)
{
    return o->server_name != NULL || o->ca_file != NULL || o->cert_file != NULL || o->key_file != NULL ||
           o->ciphers != NULL || o->groups != NULL || o->min != TLS_1_2 || o->max != TLS_1_3 || o->insecure ||
           o->resume;
}

/* --- life --- */

static enum err set_up(struct tls_config *c, const struct tls_options *o, struct err_detail *d)
{
    c->library = OSSL_LIB_CTX_new();
    c->context = c->library != NULL ? SSL_CTX_new_ex(c->library, NULL, TLS_client_method()) : NULL;
    if (c->context == NULL)
        return fail(d, ERR_FAILED, "cannot be set up");
    SSL_CTX_set_mode(c->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                     SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(c->context, SSL_OP_NO_RENEGOTIATION | (o->resume ? 0 : SSL_OP_NO_TICKET));
    SSL_CTX_set_session_cache_mode(c->context, o->resume ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                                         : SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(c->context, o->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    enum err e = set_offer(c->context, o, d);
    if (e == ERR_OK)
        e = set_name(c, o->server_name, d);
    if (e == ERR_OK && !o->insecure)
        e = load_trust(c, o, d);
    return e == ERR_OK ? load_own(c, o, d) : e;
}

enum err tls_config_new(struct tls_config **out, const struct tls_options *options, struct err_detail *d)
{
    struct tls_config *c = mem_zalloc(1, sizeof *c);
    c->resume = options->resume;
    enum err e = set_up(c, options, d);
    if (e == ERR_OK)
        *out = c;
    else
        tls_config_free(c);
    return e;
}

void tls_config_free(struct tls_config *c)
{
    if (c == NULL)
        return;
    SSL_CTX_free(c->context);
    tls_trust_reader_free(c->reader);
    OSSL_LIB_CTX_free(c->library);
    free(c->sni);
    free(c);
}
