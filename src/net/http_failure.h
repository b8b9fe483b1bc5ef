/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request can fail of, in words, and whether another try is worth it.
 */
#pragma once

#include <stdbool.h>

enum http_failure {
    HTTP_OK,
    HTTP_DENIED, /* the name resolved to an address it may not reach */
    HTTP_DNS_FAILED,
    HTTP_REFUSED,
    HTTP_RESET, /* closed or reset before the head was complete */
    HTTP_CONNECT_TIMEOUT,
    HTTP_TLS_FAILED,
    HTTP_NO_TLS,           /* it answered, but not in TLS */
    HTTP_NO_HTTP,          /* it answered, but not in HTTP, or with a head nobody can read */
    HTTP_LARGE_HEAD,       /* its head is larger than is read */
    HTTP_UNTRUSTED,        /* TLS with a certificate that no known authority vouches for */
    HTTP_WRONG_NAME,       /* with one of another host */
    HTTP_EXPIRED,          /* with one whose time is over, or has not come */
    HTTP_NO_AUTHORITIES,   /* SSL_CERT_FILE cannot be used: no certificate can be judged */
    HTTP_INCOMPLETE,       /* the body ended early */
    HTTP_RESPONSE_TIMEOUT, /* first byte or between bytes */
    HTTP_INTERNAL,         /* everything else, libcurl missing included */
};

/* "connection refused" and so on: for error texts. Static storage. */
const char *http_failure_text (enum http_failure failure);
/* Reset, timed out or incomplete: the failures worth another try (spec/session.md 5.7). */
bool http_failure_is_transient (enum http_failure failure);
