/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in for GnuTLS behind libmicrohttpd's static archive.
 *
 * The door is plain HTTP (spec/door.md 1), but the distribution builds libmicrohttpd with TLS, and
 * GnuTLS brings ten libraries and two megabytes into a process that never uses them. No daemon here
 * is started with MHD_USE_TLS, so of these only the two initialisers are ever called; the others
 * end the process. Always true: the symbols are hidden, so a real libgnutls that another library
 * brings is not shadowed.
 */
#include <stddef.h>
#include <stdlib.h>

#define HIDDEN __attribute__ ((visibility ("hidden")))

HIDDEN int gnutls_global_init (void);
HIDDEN void gnutls_global_deinit (void);
HIDDEN extern void *(*gnutls_malloc) (size_t size);

int
gnutls_global_init (void)
{
    return 0;
}

void
gnutls_global_deinit (void)
{
}

void *(*gnutls_malloc) (size_t size) = malloc;

/* Reached only by a daemon that speaks TLS. */
#define ABSENT(name)                                                                               \
    HIDDEN void name (void);                                                                       \
    void name (void)                                                                               \
    {                                                                                              \
        abort ();                                                                                  \
    }

/* clang-format off */
ABSENT (gnutls_alpn_set_protocols)
ABSENT (gnutls_bye)
ABSENT (gnutls_certificate_allocate_credentials)
ABSENT (gnutls_certificate_free_credentials)
ABSENT (gnutls_certificate_server_set_request)
ABSENT (gnutls_certificate_set_dh_params)
ABSENT (gnutls_certificate_set_retrieve_function2)
ABSENT (gnutls_certificate_set_retrieve_function3)
ABSENT (gnutls_certificate_set_x509_key_mem)
ABSENT (gnutls_certificate_set_x509_key_mem2)
ABSENT (gnutls_certificate_set_x509_trust_mem)
ABSENT (gnutls_cipher_get)
ABSENT (gnutls_credentials_set)
ABSENT (gnutls_deinit)
ABSENT (gnutls_dh_params_deinit)
ABSENT (gnutls_dh_params_import_pkcs3)
ABSENT (gnutls_dh_params_init)
ABSENT (gnutls_handshake)
ABSENT (gnutls_init)
ABSENT (gnutls_priority_deinit)
ABSENT (gnutls_priority_init)
ABSENT (gnutls_priority_set)
ABSENT (gnutls_protocol_get_version)
ABSENT (gnutls_psk_allocate_server_credentials)
ABSENT (gnutls_psk_free_server_credentials)
ABSENT (gnutls_psk_set_server_credentials_function)
ABSENT (gnutls_record_check_pending)
ABSENT (gnutls_record_get_direction)
ABSENT (gnutls_record_recv)
ABSENT (gnutls_record_send)
ABSENT (gnutls_session_get_ptr)
ABSENT (gnutls_session_set_ptr)
ABSENT (gnutls_strerror)
ABSENT (gnutls_transport_set_int2)
/* clang-format on */
