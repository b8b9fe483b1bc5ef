/* SPDX-License-Identifier: Apache-2.0
 *
 * libssl as one table of functions, loaded where TLS is served: linking it would make the daemon of
 * one machine many times as large.
 */
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>

#define SSL_API_FUNCTIONS(X)                                                                       \
    X (ERR_clear_error)                                                                            \
    X (ERR_error_string_n)                                                                         \
    X (ERR_get_error)                                                                              \
    X (SSL_CTX_check_private_key)                                                                  \
    X (SSL_CTX_ctrl)                                                                               \
    X (SSL_CTX_free)                                                                               \
    X (SSL_CTX_new)                                                                                \
    X (SSL_CTX_use_PrivateKey_file)                                                                \
    X (SSL_CTX_use_certificate_chain_file)                                                         \
    X (SSL_accept)                                                                                 \
    X (SSL_free)                                                                                   \
    X (SSL_get_error)                                                                              \
    X (SSL_new)                                                                                    \
    X (SSL_read)                                                                                   \
    X (SSL_set_fd)                                                                                 \
    X (SSL_shutdown)                                                                               \
    X (SSL_write)                                                                                  \
    X (TLS_server_method)

struct ssl_api {
#define MEMBER(name) __typeof__ (name) *name;
    SSL_API_FUNCTIONS (MEMBER)
#undef MEMBER
};

/* The loaded table, or NULL with *why set to a static sentence. One thread alone. */
const struct ssl_api *ssl_api_get (const char **why);
