#include "tests/support/tls_forge.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#define KEY_BYTES  16u
#define IV_BYTES   12u
#define TAG_BYTES  16u
#define HEAD_BYTES 5u

/* HKDF-Expand-Label of RFC 8446, section 7.1. */
static void expand(uint8_t *out, size_t len, const uint8_t *secret, const char *label)
{
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char hash[] = "SHA256";
    char prefix[] = "tls13 ";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, TLS_FORGE_SECRET),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, prefix, sizeof prefix - 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label, strlen(label)),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
    must(ctx != NULL && EVP_KDF_derive(ctx, out, len, params) == 1);
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
}

size_t tls_forge(uint8_t *out, const uint8_t secret[TLS_FORGE_SECRET], uint64_t sequence, uint8_t type,
                 const void *data, size_t len)
{
    uint8_t key[KEY_BYTES];
    uint8_t iv[IV_BYTES];
    size_t sealed = len + 1 + TAG_BYTES;
    uint8_t head[HEAD_BYTES] = {23, 3, 3, (uint8_t)(sealed >> 8), (uint8_t)sealed};
    int n = 0;
    expand(key, sizeof key, secret, "key");
    expand(iv, sizeof iv, secret, "iv");
    for (size_t i = 0; i < sizeof sequence; i++)
        iv[IV_BYTES - 1 - i] ^= (uint8_t)(sequence >> 8 * i);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    must(ctx != NULL && EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, key, iv) == 1);
    must(EVP_EncryptUpdate(ctx, NULL, &n, head, sizeof head) == 1);
    uint8_t *at = out;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    must(EVP_EncryptUpdate(ctx, at, &n, data, (int)len) == 1);
    at += n;
    must(EVP_EncryptUpdate(ctx, at, &n, &type, 1) == 1);
    at += n;
    must(EVP_EncryptFinal_ex(ctx, at, &n) == 1);
    must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, at) == 1);
    EVP_CIPHER_CTX_free(ctx);
    return (size_t)(at - out) + TAG_BYTES;
}
