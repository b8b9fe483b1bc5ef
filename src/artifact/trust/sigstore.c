/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/trust/sigstore.h"

#include "artifact/trust/signature.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/keys/certificate.h"
#include "fs/paths.h"

#include <string.h>

#define BUNDLE_MAX ((size_t)1 << 20)

char *
sigstore_beside (const char *archive)
{
    static const char *const endings[] = { ".sigstore.json", ".sigstore" };
    for (size_t i = 0; i < ARRAY_LEN (endings); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s%s", archive, endings[i]);
        struct buf text = { 0 };
        if (fs_read_regular (path, BUNDLE_MAX, &text, NULL))
            return text.data ? buf_steal (&text) : x_strdup ("");
        buf_free (&text);
    }
    return NULL;
}

static unsigned char *
decoded (const json_t *map, const char *key, size_t *len)
{
    const char *text = json_get_string (map, key);
    *len = 0;
    return text ? base64_decode (text, strlen (text), len) : NULL;
}

/* The certificate of the signer: the only one, or the first of a chain. */
static const json_t *
certificate_of (const json_t *bundle)
{
    const json_t *material = json_object_get (bundle, "verificationMaterial");
    const json_t *one = json_object_get (material, "certificate");
    const json_t *chain = json_object_get (material, "x509CertificateChain");
    return one ? one : json_array_get (json_object_get (chain, "certificates"), 0);
}

/* --- what was signed --- */

static bool
is_digest (const unsigned char *bytes, size_t len, const char *sha256)
{
    struct buf hex = { 0 };
    for (size_t i = 0; i < len; i++)
        buf_printf (&hex, "%02x", bytes[i]);
    bool is_same = len > 0 && str_eq (hex.data, sha256);
    buf_free (&hex);
    return is_same;
}

static bool
names_package (const unsigned char *statement, size_t len, const char *sha256)
{
    _cleanup_json_ json_t *json =
        json_loadb ((const char *)statement, len, JSON_REJECT_DUPLICATES, NULL);
    size_t i;
    json_t *subject;
    json_array_foreach (
        json_object_get (json, "subject"), i,
        subject) if (str_eq (json_get_string (json_object_get (subject, "digest"), "sha256"),
                             sha256)) return true;
    return false;
}

/* The signed text of an envelope that is about the package, or of the package itself, and the
 * signature. False: it is about other bytes. */
static bool
read_signed (const json_t *bundle, const struct package *package, struct buf *text,
             unsigned char **signature, size_t *signature_len)
{
    const json_t *message = json_object_get (bundle, "messageSignature");
    const json_t *envelope = json_object_get (bundle, "dsseEnvelope");
    const char *type = json_get_string (envelope, "payloadType");
    size_t len = 0;
    if (message) {
        _cleanup_free_ unsigned char *digest =
            decoded (json_object_get (message, "messageDigest"), "digest", &len);
        *signature = decoded (message, "signature", signature_len);
        buf_append (text, package->bytes, package->len);
        return digest && *signature && is_digest (digest, len, package->sha256);
    }
    _cleanup_free_ unsigned char *payload = decoded (envelope, "payload", &len);
    *signature = decoded (json_array_get (json_object_get (envelope, "signatures"), 0), "sig",
                          signature_len);
    if (! payload || ! type || ! *signature || ! names_package (payload, len, package->sha256))
        return false;
    signature_encode (type, (const char *)payload, len, text);
    return true;
}

enum sigstore_outcome
sigstore_judge (const char *text, const struct package *package, char **said)
{
    _cleanup_json_ json_t *bundle = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *certificate = certificate_of (bundle);
    _cleanup_free_ unsigned char *signature = NULL;
    _cleanup_buf_ struct buf signed_text = { 0 };
    _cleanup_certificate_facts_ struct certificate_facts facts = { 0 };
    struct certificate_use use = { 0 };
    *said = NULL;
    if (! read_signed (bundle, package, &signed_text, &signature, &use.signature_len)) {
        *said = x_strdup ("is malformed, or is not about these bytes");
        return SIGSTORE_BROKEN;
    }
    if (! certificate) {
        *said = x_strdup ("is about these bytes; it has no certificate, and was not checked");
        return SIGSTORE_UNCHECKED;
    }
    _cleanup_free_ unsigned char *der = decoded (certificate, "rawBytes", &use.der_len);
    use.der = der;
    use.data = signed_text.data;
    use.len = signed_text.len;
    use.signature = signature;
    if (! der || certificate_check (&use, &facts) != CERTIFICATE_HOLDS) {
        *said = x_strdup ("was not made by the key of the certificate in it");
        return SIGSTORE_BROKEN;
    }
    *said = x_asprintf (
        "is about these bytes and made by the key of its certificate, for %.200s%s%.200s; that the "
        "certificate is Sigstore's, and the log, were not checked",
        facts.identity ? facts.identity : "nobody", facts.issuer ? " by " : "",
        facts.issuer ? facts.issuer : "");
    return SIGSTORE_HOLDS;
}
