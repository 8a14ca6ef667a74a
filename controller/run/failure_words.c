#include "controller/run/failure_words.h"

#include <string.h>

static const struct {
    const char *phase; /* NULL = any */
    const char *cause;
    const char *words;
} table[] = {
    {"connect", "refused", "whose connection the server refused"},
    {"connect", "reset", "whose connection the server reset at once"},
    {"connect", "timeout", "whose connection was not open in time"},
    {"tls", "version", "for which the server offers no TLS version in common"},
    {"tls", "cipher", "for which the server offers no TLS cipher suite or group in common"},
    {"tls", "certificate_wanted", "from which the server wants a client certificate"},
    {"tls", "wrong_name", "that met a certificate of another name"},
    {"tls", "expired", "that met a certificate that is not valid now"},
    {"tls", "verify", "that met a certificate that is not to be trusted"},
    {"tls", "protocol", "whose TLS hand-shake failed"},
    {"tls", "timeout", "whose TLS hand-shake did not end in time"},
    {"tls", "closed_early", "whose connection the server closed in the TLS hand-shake"},
    {"tls", "reset", "whose connection the server reset in the TLS hand-shake"},
    {"send", "timeout", "that the server did not take in time"},
    {"send", "closed_early", "whose connection the server closed while they were sent"},
    {"send", "reset", "whose connection the server reset while they were sent"},
    {"wait", "timeout", "without an answer in time"},
    {"wait", "closed_early", "whose connection the server closed without an answer"},
    {"wait", "reset", "whose connection the server reset without an answer"},
    {"receive", "timeout", "whose answer was not whole in time"},
    {"receive", "closed_early", "whose connection the server closed amid the answer"},
    {"receive", "reset", "whose connection the server reset amid the answer"},
    {"receive", "desync", "whose answer was followed by bytes that no request asked for"},
    {"receive", "status", "answered with a status that was not expected"},
    {"receive", "check", "answered with another body than expected"},
    {NULL, "stale", "on kept-alive connections that the server had closed"},
    {NULL, "protocol", "whose answer is not as HTTP/1.x has it"},
    {NULL, "too_big", "whose answer has a head or trailer that is too big"},
    {NULL, "refused", "whose connection the server refused"},
    {NULL, "unreachable", "that found no way to the server"},
    {NULL, "local", "for want of ports or files or memory on the load host"},
    {NULL, "other", "with another error of the network"},
};

const char *failure_words(const char *phase, const char *cause)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].cause, cause) == 0 &&
            (table[i].phase == NULL || strcmp(table[i].phase, phase) == 0))
            return table[i].words;
    return NULL;
}
