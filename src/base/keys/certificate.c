/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keys/certificate.h"

#include "base/alloc.h"
#include "base/dl_table.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <string.h>

static struct x509_api {
    __typeof__ (&d2i_X509) read;
    __typeof__ (&X509_free) free;
    __typeof__ (&X509_get0_pubkey) key_of;
    __typeof__ (&X509_get_ext_d2i) extension_value;
    __typeof__ (&X509_get_ext_by_OBJ) find_extension;
    __typeof__ (&X509_get_ext) extension;
    __typeof__ (&X509_EXTENSION_get_data) extension_data;
    __typeof__ (&OBJ_txt2obj) object;
    __typeof__ (&ASN1_OBJECT_free) object_free;
    __typeof__ (&ASN1_STRING_get0_data) string_data;
    __typeof__ (&ASN1_STRING_length) string_length;
    __typeof__ (&GENERAL_NAMES_free) names_free;
    __typeof__ (&OPENSSL_sk_num) count;
    __typeof__ (&OPENSSL_sk_value) item;
    __typeof__ (&EVP_MD_CTX_new) context_new;
    __typeof__ (&EVP_MD_CTX_free) context_free;
    __typeof__ (&EVP_sha256) sha256;
    __typeof__ (&EVP_DigestVerifyInit) verify_init;
    __typeof__ (&EVP_DigestVerify) verify;
} api;

static const struct dl_symbol symbols[] = {
    { "d2i_X509", offsetof (struct x509_api, read) },
    { "X509_free", offsetof (struct x509_api, free) },
    { "X509_get0_pubkey", offsetof (struct x509_api, key_of) },
    { "X509_get_ext_d2i", offsetof (struct x509_api, extension_value) },
    { "X509_get_ext_by_OBJ", offsetof (struct x509_api, find_extension) },
    { "X509_get_ext", offsetof (struct x509_api, extension) },
    { "X509_EXTENSION_get_data", offsetof (struct x509_api, extension_data) },
    { "OBJ_txt2obj", offsetof (struct x509_api, object) },
    { "ASN1_OBJECT_free", offsetof (struct x509_api, object_free) },
    { "ASN1_STRING_get0_data", offsetof (struct x509_api, string_data) },
    { "ASN1_STRING_length", offsetof (struct x509_api, string_length) },
    { "GENERAL_NAMES_free", offsetof (struct x509_api, names_free) },
    { "OPENSSL_sk_num", offsetof (struct x509_api, count) },
    { "OPENSSL_sk_value", offsetof (struct x509_api, item) },
    { "EVP_MD_CTX_new", offsetof (struct x509_api, context_new) },
    { "EVP_MD_CTX_free", offsetof (struct x509_api, context_free) },
    { "EVP_sha256", offsetof (struct x509_api, sha256) },
    { "EVP_DigestVerifyInit", offsetof (struct x509_api, verify_init) },
    { "EVP_DigestVerify", offsetof (struct x509_api, verify) },
};

static const char *const file_names[] = { "libcrypto.so.3", NULL };

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static bool is_loaded;

static void
load (void)
{
    is_loaded = dl_table_load (file_names, symbols, ARRAY_LEN (symbols), &api) == DL_LOADED;
}

void
certificate_facts_clear (struct certificate_facts *f)
{
    free (f->identity);
    free (f->issuer);
    *f = (struct certificate_facts){ 0 };
}

static char *
text_of (const ASN1_STRING *s)
{
    return x_strndup ((const char *)api.string_data (s), (size_t)api.string_length (s));
}

/* The first address or URI among the names. Owned; NULL: none. */
static char *
identity_of (X509 *certificate)
{
    GENERAL_NAMES *names = api.extension_value (certificate, NID_subject_alt_name, NULL, NULL);
    const OPENSSL_STACK *list = (const OPENSSL_STACK *)names;
    char *found = NULL;
    for (int i = 0; names && ! found && i < api.count (list); i++) {
        const GENERAL_NAME *name = api.item (list, i);
        if (name->type == GEN_EMAIL || name->type == GEN_URI)
            found = text_of (name->d.ia5);
    }
    if (names)
        api.names_free (names);
    return found;
}

/* The extension Sigstore names the issuer in: a UTF8String. Owned; NULL: it is not there. */
static char *
issuer_of (X509 *certificate)
{
    ASN1_OBJECT *wanted = api.object ("1.3.6.1.4.1.57264.1.8", 1);
    int at = wanted ? api.find_extension (certificate, wanted, -1) : -1;
    api.object_free (wanted);
    if (at < 0)
        return NULL;
    const ASN1_STRING *value = api.extension_data (api.extension (certificate, at));
    const unsigned char *der = api.string_data (value);
    int len = api.string_length (value);
    bool is_short_text = len >= 2 && der[0] == V_ASN1_UTF8STRING && der[1] == len - 2;
    return is_short_text ? x_strndup ((const char *)der + 2, (size_t)len - 2) : NULL;
}

enum certificate_outcome
certificate_check (const struct certificate_use *use, struct certificate_facts *facts)
{
    const unsigned char *der = use->der;
    *facts = (struct certificate_facts){ 0 };
    pthread_once (&loaded_once, load);
    X509 *certificate = is_loaded ? api.read (NULL, &der, (long)use->der_len) : NULL;
    if (! certificate)
        return CERTIFICATE_UNREADABLE;
    EVP_PKEY *key = api.key_of (certificate);
    EVP_MD_CTX *context = api.context_new ();
    bool holds = key && context && api.verify_init (context, NULL, api.sha256 (), NULL, key) == 1 &&
                 api.verify (context, use->signature, use->signature_len, use->data, use->len) == 1;
    facts->identity = identity_of (certificate);
    facts->issuer = issuer_of (certificate);
    api.context_free (context);
    api.free (certificate);
    return holds ? CERTIFICATE_HOLDS : CERTIFICATE_FAILS;
}
