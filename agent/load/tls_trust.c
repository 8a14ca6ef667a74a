#include "agent/load/tls_trust.h"

#include "common/mem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

struct cert {
    X509_NAME *name;
    uint8_t *der; /* OpenSSL's, as the name */
    int len;
};

struct tls_trust {
    struct cert *certs; /* by name, in the order of X509_NAME_cmp */
    size_t count;
};

struct tls_trust_reader {
    const struct tls_trust *trust;
    OSSL_LIB_CTX *library;
    bool *in_store; /* by place in the trust */
};

/* --- main: all of the file --- */

static int compare(const void *a, const void *b)
{
    return X509_NAME_cmp(((const struct cert *)a)->name, ((const struct cert *)b)->name);
}

static void add(struct tls_trust *t, X509 *x)
{
    struct cert *c = &t->certs[t->count++];
    *c = (struct cert){.name = X509_NAME_dup(X509_get_subject_name(x))};
    c->len = i2d_X509_AUX(x, &c->der);
    must(c->name != NULL && c->len > 0); /* fails for want of memory alone */
}

enum err tls_trust_read(struct tls_trust **out, const char *path, struct err_detail *d)
{
    struct tls_trust *t = mem_zalloc(1, sizeof *t);
    BIO *in = BIO_new_file(path, "r");
    X509 *x;
    t->certs = mem_zalloc(TLS_TRUST_CERTS_MAX, sizeof *t->certs);
    while (in != NULL && t->count < TLS_TRUST_CERTS_MAX &&
           (x = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)) != NULL) {
        add(t, x);
        X509_free(x);
    }
    BIO_free(in);
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    bool at_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    enum err e = ERR_OK;
    if (t->count == TLS_TRUST_CERTS_MAX)
        e = err_set(d, ERR_TOO_BIG, "TLS: %s has more than %u certificates", path, TLS_TRUST_CERTS_MAX - 1);
    else if (!at_end || t->count == 0)
        e = err_set(d, ERR_INVALID, "TLS: cannot read CA certificates: %s: %s", path,
                    reason != NULL ? reason : "not in PEM");
    ERR_clear_error();
    qsort(t->certs, t->count, sizeof *t->certs, compare);
    if (e == ERR_OK)
        *out = t;
    else
        tls_trust_free(t);
    return e;
}

void tls_trust_free(struct tls_trust *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->count; i++) {
        X509_NAME_free(t->certs[i].name);
        OPENSSL_free(t->certs[i].der);
    }
    free(t->certs);
    free(t);
}

/* --- each thread: what is asked for --- */

static void put_in_store(struct tls_trust_reader *r, X509_STORE *store, size_t i)
{
    const struct cert *c = &r->trust->certs[i];
    const uint8_t *at = c->der;
    X509 *x = X509_new_ex(r->library, NULL);
    /* Without memory for it the verdict will be that the issuer is not known. */
    r->in_store[i] = x != NULL && d2i_X509_AUX(&x, &at, c->len) != NULL && X509_STORE_add_cert(store, x) == 1;
    X509_free(x);
}

/* All of this name. */
static void look_up(X509_STORE_CTX *ctx, const X509_NAME *name)
{
    X509_STORE *store = X509_STORE_CTX_get0_store(ctx);
    struct tls_trust_reader *r = X509_STORE_get_ex_data(store, 0);
    size_t low = 0;
    for (size_t high = r->trust->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (X509_NAME_cmp(r->trust->certs[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->trust->count && X509_NAME_cmp(r->trust->certs[low].name, name) == 0; low++)
        if (!r->in_store[low])
            put_in_store(r, store, low);
}

/* All that a verification asks the store for, as long as it has to end at a root: no partial chains. */
static int get_issuer(X509 **issuer, X509_STORE_CTX *ctx, X509 *x)
{
    look_up(ctx, X509_get_issuer_name(x));
    return X509_STORE_CTX_get1_issuer(issuer, ctx, x);
}

struct tls_trust_reader *tls_trust_reader_new(const struct tls_trust *t, OSSL_LIB_CTX *library,
                                              X509_STORE *store)
{
    struct tls_trust_reader *r = mem_zalloc(1, sizeof *r);
    *r = (struct tls_trust_reader){.trust = t, .library = library};
    r->in_store = mem_zalloc(t->count, sizeof *r->in_store);
    must(X509_STORE_set_ex_data(store, 0, r) == 1); /* the place that is every application's own */
    X509_STORE_set_get_issuer(store, get_issuer);
    return r;
}

void tls_trust_reader_free(struct tls_trust_reader *r)
{
    if (r == NULL)
        return;
    free(r->in_store);
    free(r);
}
