#include "agent/load/tls_failure.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <stdio.h>

/* OpenSSL's reasons that are not alerts of the peer. What is not listed is a fault of protocol. */
static const struct {
    int reason;
    enum fault_cause cause;
    const char *text; /* NULL: OpenSSL's own */
} reasons[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL, CAUSE_VERSION, "the server's TLS version is not one that we offer"},
    {SSL_R_WRONG_SSL_VERSION, CAUSE_VERSION, "the server's TLS version is not one that we offer"},
    {SSL_R_VERSION_TOO_LOW, CAUSE_VERSION, "the server's TLS version is not one that we offer"},
    {SSL_R_NO_PROTOCOLS_AVAILABLE, CAUSE_VERSION, "no TLS version is left to offer"},
    {SSL_R_INAPPROPRIATE_FALLBACK, CAUSE_VERSION, NULL},
    {SSL_R_WRONG_CIPHER_RETURNED, CAUSE_CIPHER, "the server chose a cipher suite that was not offered"},
    {SSL_R_UNKNOWN_CIPHER_RETURNED, CAUSE_CIPHER, "the server chose a cipher suite that was not offered"},
    {SSL_R_NO_CIPHERS_AVAILABLE, CAUSE_CIPHER, "no cipher suite is left to offer"},
    {SSL_R_WRONG_CURVE, CAUSE_CIPHER, "the server chose a group that was not offered"},
    {SSL_R_BAD_KEY_SHARE, CAUSE_CIPHER, "the server chose a group that was not offered"},
    {SSL_R_NO_SUITABLE_KEY_SHARE, CAUSE_CIPHER, "no group in common with the server"},
    {SSL_R_WRONG_SIGNATURE_TYPE, CAUSE_CIPHER, "the server signs in a way that was not offered"},
    {SSL_R_DH_KEY_TOO_SMALL, CAUSE_CIPHER, NULL},
    {SSL_R_WRONG_VERSION_NUMBER, CAUSE_PROTOCOL, "the answer is not TLS"},
    {SSL_R_PACKET_LENGTH_TOO_LONG, CAUSE_PROTOCOL, "a record is longer than any may be"},
    {SSL_R_DATA_LENGTH_TOO_LONG, CAUSE_PROTOCOL, "a record is longer than any may be"},
    {SSL_R_ENCRYPTED_LENGTH_TOO_LONG, CAUSE_PROTOCOL, "a record is longer than any may be"},
    {SSL_R_UNEXPECTED_MESSAGE, CAUSE_PROTOCOL,
     "a message that has no place there, such as a late request for a certificate"},
    {SSL_R_BAD_EXTENSION, CAUSE_PROTOCOL,
     "the server chose what was not offered (ALPN), or an extension is broken"},
    {ERR_R_INTERNAL_ERROR, CAUSE_PROTOCOL,
     "a record or message is broken in a way that OpenSSL has no name for"},
    {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, CAUSE_PROTOCOL, "a record is damaged (bad MAC)"},
};

/* Alerts of the peer; RFC 8446 6.2, RFC 5246 7.2.2. */
static const struct {
    int alert;
    enum fault_cause cause;
    const char *text;
} alerts[] = {
    {SSL_AD_PROTOCOL_VERSION, CAUSE_VERSION, "the server takes no TLS version that we offer"},
    {SSL_AD_HANDSHAKE_FAILURE, CAUSE_CIPHER, "the server takes no cipher suite, group or signature we offer"},
    {SSL_AD_INSUFFICIENT_SECURITY, CAUSE_CIPHER, "the server wants stronger cipher suites than we offer"},
    {SSL_AD_NO_APPLICATION_PROTOCOL, CAUSE_PROTOCOL, "the server does not speak http/1.1 (ALPN)"},
    {SSL_AD_UNRECOGNIZED_NAME, CAUSE_WRONG_NAME,
     "the server does not know the name that was asked for (SNI)"},
    {SSL_AD_CERTIFICATE_REQUIRED, CAUSE_CERTIFICATE_WANTED, "the server wants a client certificate"},
};

void tls_failure_set(struct tls_failure *out, enum fault_cause cause, const char *text)
{
    out->cause = cause;
    snprintf(out->text, sizeof out->text, "%s", text);
}

/* --- the server's certificate --- */

static enum fault_cause cause_of_verdict(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return CAUSE_EXPIRED;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return CAUSE_WRONG_NAME;
    default:
        return CAUSE_VERIFY;
    }
}

static void explain_distrust(struct tls_failure *out, const SSL *ssl)
{
    long verdict = SSL_get_verify_result(ssl);
    snprintf(out->text, sizeof out->text, "the server's certificate: %s",
             X509_verify_cert_error_string(verdict));
    out->cause = cause_of_verdict(verdict);
}

/* --- what the server says --- */

/* An alert after the server has asked for a certificate is about ours. TLS 1.2 has no alert for
 * a missing one: servers send handshake_failure. */
static bool is_about_our_certificate(int alert, const struct tls_story *story)
{
    return story->cert_asked &&
           (alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_CERTIFICATE_REQUIRED ||
            alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_DECRYPT_ERROR ||
            (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN));
}

static void explain_alert(struct tls_failure *out, int alert, const struct tls_story *story)
{
    const char *name = SSL_alert_desc_string_long(alert);
    if (is_about_our_certificate(alert, story)) {
        out->cause = CAUSE_CERTIFICATE_WANTED;
        if (story->cert_given)
            snprintf(out->text, sizeof out->text, "the server refuses our certificate: %s", name);
        else
            snprintf(out->text, sizeof out->text, "the server wants a client certificate (--cert)");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(alerts); i++)
        if (alerts[i].alert == alert) {
            tls_failure_set(out, alerts[i].cause, alerts[i].text);
            return;
        }
    out->cause = CAUSE_PROTOCOL;
    snprintf(out->text, sizeof out->text, "the server ends it: alert %d, %s", alert, name);
}

/* --- all of it --- */

/* The first error of TLS itself: what failed below, in a cipher, stands before it. Whether memory was wanting
 * is said by any of them. */
static unsigned long first_error(bool *no_memory)
{
    unsigned long first = ERR_peek_error();
    unsigned long of_tls = 0;
    for (unsigned long code; (code = ERR_get_error()) != 0;) {
        *no_memory |= ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
        if (of_tls == 0 && ERR_GET_LIB(code) == ERR_LIB_SSL)
            of_tls = code;
    }
    return of_tls != 0 ? of_tls : first;
}

static void explain_reason(struct tls_failure *out, unsigned long code, int reason)
{
    const char *text = ERR_reason_error_string(code);
    tls_failure_set(out, CAUSE_PROTOCOL, text != NULL ? text : "the TLS session failed");
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].reason != reason)
            continue;
        out->cause = reasons[i].cause;
        if (reasons[i].text != NULL)
            tls_failure_set(out, reasons[i].cause, reasons[i].text);
    }
}

void tls_failure_explain(struct tls_failure *out, const SSL *ssl, const struct tls_story *story)
{
    bool no_memory = false;
    unsigned long code = first_error(&no_memory);
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    if (no_memory)
        tls_failure_set(out, CAUSE_LOCAL, "this host has no memory left for TLS");
    else if (story->saw_http)
        tls_failure_set(out, CAUSE_PROTOCOL, "the answer is not TLS but plain HTTP: is this the right port?");
    else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        explain_distrust(out, ssl);
    else if (reason >= SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + UINT8_MAX)
        explain_alert(out, reason - SSL_AD_REASON_OFFSET, story);
    else
        explain_reason(out, code, reason);
}
