/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keys/ed25519.h"

#include "base/digest.h"
#include "base/dl_table.h"

#include <openssl/evp.h>
#include <pthread.h>

static struct ed25519_api {
    __typeof__ (&EVP_PKEY_new_raw_private_key) pkey_new_raw_private_key;
    __typeof__ (&EVP_PKEY_new_raw_public_key) pkey_new_raw_public_key;
    __typeof__ (&EVP_PKEY_get_raw_public_key) pkey_get_raw_public_key;
    __typeof__ (&EVP_PKEY_free) pkey_free;
    __typeof__ (&EVP_MD_CTX_new) context_new;
    __typeof__ (&EVP_MD_CTX_free) context_free;
    __typeof__ (&EVP_DigestSignInit) sign_init;
    __typeof__ (&EVP_DigestSign) sign;
    __typeof__ (&EVP_DigestVerifyInit) verify_init;
    __typeof__ (&EVP_DigestVerify) verify;
} api;

static const struct dl_symbol symbols[] = {
    { "EVP_PKEY_new_raw_private_key", offsetof (struct ed25519_api, pkey_new_raw_private_key) },
    { "EVP_PKEY_new_raw_public_key", offsetof (struct ed25519_api, pkey_new_raw_public_key) },
    { "EVP_PKEY_get_raw_public_key", offsetof (struct ed25519_api, pkey_get_raw_public_key) },
    { "EVP_PKEY_free", offsetof (struct ed25519_api, pkey_free) },
    { "EVP_MD_CTX_new", offsetof (struct ed25519_api, context_new) },
    { "EVP_MD_CTX_free", offsetof (struct ed25519_api, context_free) },
    { "EVP_DigestSignInit", offsetof (struct ed25519_api, sign_init) },
    { "EVP_DigestSign", offsetof (struct ed25519_api, sign) },
    { "EVP_DigestVerifyInit", offsetof (struct ed25519_api, verify_init) },
    { "EVP_DigestVerify", offsetof (struct ed25519_api, verify) },
};

static const char *const file_names[] = { "libcrypto.so.3", NULL };

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static const char *load_fault;

static void
load (void)
{
    switch (dl_table_load (file_names, symbols, ARRAY_LEN (symbols), &api)) {
    case DL_ABSENT:
        load_fault = "libcrypto.so.3 is not installed (Debian package libssl3)";
        return;
    case DL_INCOMPLETE:
        load_fault = "libcrypto.so.3 lacks Ed25519";
        return;
    case DL_LOADED:
        return;
    }
}

bool
ed25519_load (struct mur_error **err)
{
    pthread_once (&loaded_once, load);
    return ! load_fault || mur_fail (err, E_IO_003, "signatures need libcrypto: %s", load_fault);
}

bool
ed25519_new_pair (unsigned char private_key[ED25519_KEY_LEN],
                  unsigned char public_key[ED25519_KEY_LEN])
{
    random_bytes (private_key, ED25519_KEY_LEN);
    return ed25519_public_of (private_key, public_key);
}

bool
ed25519_public_of (const unsigned char private_key[ED25519_KEY_LEN],
                   unsigned char public_key[ED25519_KEY_LEN])
{
    size_t len = ED25519_KEY_LEN;
    EVP_PKEY *key =
        api.pkey_new_raw_private_key (EVP_PKEY_ED25519, NULL, private_key, ED25519_KEY_LEN);
    bool is_made = key && api.pkey_get_raw_public_key (key, public_key, &len) == 1;
    api.pkey_free (key);
    return is_made;
}

bool
ed25519_sign (const unsigned char private_key[ED25519_KEY_LEN], const void *data, size_t len,
              unsigned char signature[ED25519_SIGNATURE_LEN])
{
    size_t signature_len = ED25519_SIGNATURE_LEN;
    EVP_PKEY *key =
        api.pkey_new_raw_private_key (EVP_PKEY_ED25519, NULL, private_key, ED25519_KEY_LEN);
    EVP_MD_CTX *context = api.context_new ();
    bool is_signed = key && context && api.sign_init (context, NULL, NULL, NULL, key) == 1 &&
                     api.sign (context, signature, &signature_len, data, len) == 1;
    api.context_free (context);
    api.pkey_free (key);
    return is_signed && signature_len == ED25519_SIGNATURE_LEN;
}

bool
ed25519_verify (const unsigned char public_key[ED25519_KEY_LEN], const void *data, size_t len,
                const unsigned char signature[ED25519_SIGNATURE_LEN])
{
    EVP_PKEY *key =
        api.pkey_new_raw_public_key (EVP_PKEY_ED25519, NULL, public_key, ED25519_KEY_LEN);
    EVP_MD_CTX *context = api.context_new ();
    bool is_good = key && context && api.verify_init (context, NULL, NULL, NULL, key) == 1 &&
                   api.verify (context, signature, ED25519_SIGNATURE_LEN, data, len) == 1;
    api.context_free (context);
    api.pkey_free (key);
    return is_good;
}
