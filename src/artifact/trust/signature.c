/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/trust/signature.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"

#include <string.h>

static const char payload_type[] = "application/vnd.in-toto+json";
static const char statement_type[] = "https://in-toto.io/Statement/v1";
static const char predicate_type[] = "urn:murmur:package:v1";

/* --- making --- */

static char *
statement_of (const struct signed_package *p)
{
    _cleanup_json_ json_t *statement = json_object ();
    json_t *subject = json_object (), *digest = json_object (), *subjects = json_array ();
    json_t *predicate = json_object ();
    _cleanup_free_ char *name = x_asprintf ("%s@%s", p->name, p->version);
    json_set_string (statement, "_type", statement_type);
    json_set_string (subject, "name", name);
    json_set_string (digest, "sha256", p->sha256);
    json_object_set_new (subject, "digest", digest);
    json_array_append_new (subjects, subject);
    json_object_set_new (statement, "subject", subjects);
    json_set_string (statement, "predicateType", predicate_type);
    json_set_string (predicate, "name", p->name);
    json_set_string (predicate, "version", p->version);
    json_object_set_new (statement, "predicate", predicate);
    return json_text (statement, JSON_TEXT_ORDERED);
}

void
signature_encode (const char *type, const char *payload, size_t len, struct buf *out)
{
    buf_printf (out, "DSSEv1 %zu %s %zu ", strlen (type), type, len);
    buf_append (out, payload, len);
}

/* The signatures of an envelope over the same payload by other keys. */
static void
keep_others (const char *older, const char *payload, const char *id, json_t *signatures)
{
    _cleanup_json_ json_t *envelope = older ? json_loads (older, 0, NULL) : NULL;
    size_t i;
    json_t *one;
    if (! str_eq (json_get_string (envelope, "payload"), payload))
        return;
    json_array_foreach (json_object_get (envelope, "signatures"), i,
                        one) if (! str_eq (json_get_string (one, "keyid"), id))
        json_array_append (signatures, one);
}

char *
signature_make (const struct signed_package *p, const struct trust_key *key,
                const unsigned char private_key[ED25519_KEY_LEN], const char *older)
{
    unsigned char signature[ED25519_SIGNATURE_LEN];
    _cleanup_free_ char *statement = statement_of (p);
    _cleanup_buf_ struct buf encoded = { 0 };
    signature_encode (payload_type, statement, strlen (statement), &encoded);
    if (! ed25519_sign (private_key, encoded.data, encoded.len, signature))
        return NULL;
    _cleanup_free_ char *payload = base64_encode (statement, strlen (statement));
    _cleanup_free_ char *text = base64_encode (signature, sizeof signature);
    _cleanup_json_ json_t *envelope = json_object ();
    json_t *signatures = json_array (), *one = json_object ();
    keep_others (older, payload, key->id, signatures);
    json_set_string (one, "keyid", key->id);
    json_set_string (one, "sig", text);
    json_array_append_new (signatures, one);
    json_set_string (envelope, "payloadType", payload_type);
    json_set_string (envelope, "payload", payload);
    json_object_set_new (envelope, "signatures", signatures);
    _cleanup_free_ char *line = json_text (envelope, JSON_TEXT_ORDERED);
    return x_asprintf ("%s\n", line);
}

char *
signature_join (const char *one, const char *other)
{
    _cleanup_json_ json_t *envelope = json_loads (one, 0, NULL);
    _cleanup_json_ json_t *added = json_loads (other, 0, NULL);
    const char *payload = json_get_string (envelope, "payload");
    json_t *signatures = json_object_get (envelope, "signatures"), *signature;
    size_t i;
    if (! payload || ! json_is_array (signatures) ||
        ! str_eq (json_get_string (added, "payload"), payload))
        return x_strdup (other);
    json_array_foreach (json_object_get (added, "signatures"), i, signature)
    {
        bool is_there = false;
        for (size_t n = 0; n < json_array_size (signatures) && ! is_there; n++)
            is_there = json_equal (json_array_get (signatures, n), signature);
        if (! is_there)
            json_array_append (signatures, signature);
    }
    _cleanup_free_ char *line = json_text (envelope, JSON_TEXT_ORDERED);
    return x_asprintf ("%s\n", line);
}

/* --- judging --- */

static bool
is_signed_by (const json_t *envelope, const struct buf *encoded, const struct trust_key *key)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get (envelope, "signatures"), i, one)
    {
        const char *text = json_get_string (one, "sig");
        size_t len = 0;
        _cleanup_free_ unsigned char *signature =
            text ? base64_decode (text, strlen (text), &len) : NULL;
        if (signature && len == ED25519_SIGNATURE_LEN &&
            ed25519_verify (key->public_key, encoded->data, encoded->len, signature))
            return true;
    }
    return false;
}

static bool
names_key (const json_t *envelope, const struct trust_key *key)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get (envelope, "signatures"), i,
                        one) if (str_eq (json_get_string (one, "keyid"), key->id)) return true;
    return false;
}

/* What a statement says that is not so of this package; NULL: nothing. Owned. */
static char *
statement_fault (const char *text, size_t len, const struct signed_package *p)
{
    _cleanup_json_ json_t *statement = json_loadb (text, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *subjects = json_object_get (statement, "subject");
    const json_t *predicate = json_object_get (statement, "predicate");
    const char *sha256 =
        json_get_string (json_object_get (json_array_get (subjects, 0), "digest"), "sha256");
    const char *name = json_get_string (predicate, "name");
    const char *version = json_get_string (predicate, "version");
    if (! str_eq (json_get_string (statement, "_type"), statement_type) ||
        ! str_eq (json_get_string (statement, "predicateType"), predicate_type) ||
        json_array_size (subjects) != 1 || ! sha256 || ! name || ! version)
        return x_strdup ("it is no statement about a package of murmur");
    if (! str_eq (sha256, p->sha256) || ! str_eq (name, p->name) || ! str_eq (version, p->version))
        return x_asprintf ("it is of %.100s@%.100s with sha256 %.64s, and this is %s@%s with %s",
                           name, version, sha256, p->name, p->version, p->sha256);
    return NULL;
}

static enum signature_verdict
broken (char **why, char *text)
{
    if (why)
        *why = text;
    else
        free (text);
    return SIGNATURE_BROKEN;
}

char *
signature_fault (const char *text, const struct signed_package *p)
{
    _cleanup_json_ json_t *envelope = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    const char *payload = json_get_string (envelope, "payload");
    size_t len = 0;
    _cleanup_free_ unsigned char *statement =
        payload ? base64_decode (payload, strlen (payload), &len) : NULL;
    return statement ? statement_fault ((const char *)statement, len, p)
                     : x_strdup ("it is no DSSE envelope of a statement");
}

enum signature_verdict
signature_judge (const char *text, const struct signed_package *p, const struct trust_key *keys,
                 size_t count, size_t *which, char **why)
{
    _cleanup_json_ json_t *envelope = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    const char *type = json_get_string (envelope, "payloadType");
    const char *payload = json_get_string (envelope, "payload");
    size_t len = 0, signer = 0;
    _cleanup_free_ unsigned char *statement =
        payload ? base64_decode (payload, strlen (payload), &len) : NULL;
    if (! statement || ! str_eq (type, payload_type))
        return broken (why, x_strdup ("it is no DSSE envelope of a statement"));
    _cleanup_buf_ struct buf encoded = { 0 };
    signature_encode (type, (const char *)statement, len, &encoded);
    while (signer < count && ! is_signed_by (envelope, &encoded, &keys[signer]))
        signer++;
    for (size_t i = 0; signer == count && i < count; i++)
        if (names_key (envelope, &keys[i]))
            return broken (
                why, x_asprintf ("it names the key \"%s\", which did not make it", keys[i].name));
    if (signer == count) {
        if (why)
            *why = x_strdup ("no key that is trusted for it has signed it");
        return SIGNATURE_FOREIGN;
    }
    char *fault = statement_fault ((const char *)statement, len, p);
    if (fault)
        return broken (why, fault);
    if (which)
        *which = signer;
    return SIGNATURE_GOOD;
}
