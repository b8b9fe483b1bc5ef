/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_failure.h"

static const struct {
    const char *text;
    bool is_transient;
} failures[] = {
    [HTTP_OK] = { "no failure", false },
    [HTTP_DENIED] = { "the name resolves to a link-local or metadata address", false },
    [HTTP_DNS_FAILED] = { "the name does not resolve", false },
    [HTTP_REFUSED] = { "connection refused", false },
    [HTTP_RESET] = { "connection closed before an answer", true },
    [HTTP_CONNECT_TIMEOUT] = { "connecting timed out", true },
    [HTTP_TLS_FAILED] = { "TLS failed", false },
    [HTTP_NO_HTTP] = { "what it answers is no HTTP: is it an https:// address, or another service?",
                       false },
    [HTTP_LARGE_HEAD] = { "the head of its answer is over the bound (256 KiB, 100 KiB a line)",
                          false },
    [HTTP_NO_TLS] = { "it does not speak TLS: is it an http:// address?", false },
    [HTTP_WRONG_NAME] = { "its certificate is for another name than the address has", false },
    [HTTP_EXPIRED] = { "its certificate has expired or is not valid yet (is the clock right?)",
                       false },
    [HTTP_NO_AUTHORITIES] = { "the file that SSL_CERT_FILE names cannot be read, or holds no "
                              "certificates",
                              false },
    [HTTP_UNTRUSTED] = { "its certificate is not trusted (SSL_CERT_FILE names a file of further "
                         "authorities)",
                         false },
    [HTTP_INCOMPLETE] = { "the answer ended early", true },
    [HTTP_RESPONSE_TIMEOUT] = { "the answer timed out", true },
    [HTTP_INTERNAL] = { "the request could not be made", false },
};

const char *
http_failure_text (enum http_failure failure)
{
    return failures[failure].text;
}

bool
http_failure_is_transient (enum http_failure failure)
{
    return failures[failure].is_transient;
}
