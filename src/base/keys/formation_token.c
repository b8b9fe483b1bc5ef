/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keys/formation_token.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"

#include <string.h>

#define DOMAIN    "murmur-formation-token-v1"
#define SEPARATOR '\x1f'
#define MAX_TOKEN 16384

static void
append_signed (struct buf *out, const char *payload, size_t len)
{
    buf_printf (out, DOMAIN "%cmft1%c", SEPARATOR, SEPARATOR);
    buf_append (out, payload, len);
}

char *
formation_token_mint (const unsigned char private_key[ED25519_KEY_LEN], const char *formation_id,
                      const char *from, const char *to)
{
    _cleanup_json_ json_t *payload = json_object ();
    json_set_string (payload, "formation", formation_id);
    json_set_string (payload, "from", from);
    json_set_string (payload, "to", to);
    _cleanup_free_ char *text = json_text (payload, JSON_TEXT_ORDERED);
    _cleanup_free_ char *segment = base64url_encode (text, strlen (text));
    _cleanup_buf_ struct buf input = { 0 };
    unsigned char signature[ED25519_SIGNATURE_LEN];
    append_signed (&input, segment, strlen (segment));
    if (! ed25519_sign (private_key, input.data, input.len, signature))
        return NULL;
    _cleanup_free_ char *mark = base64url_encode (signature, sizeof signature);
    return x_asprintf (FORMATION_TOKEN_TAG "%s.%s", segment, mark);
}

/* The payload of a token signed by the key's owner, or NULL. Owned. */
static json_t *
genuine_payload (const unsigned char *public_key, const char *token)
{
    size_t tag_len = strlen (FORMATION_TOKEN_TAG), mark_len, text_len;
    if (strlen (token) > MAX_TOKEN || strncmp (token, FORMATION_TOKEN_TAG, tag_len) != 0)
        return NULL;
    const char *payload = token + tag_len, *dot = strchr (payload, '.');
    if (! dot || dot == payload)
        return NULL;
    _cleanup_free_ unsigned char *mark = base64url_decode (dot + 1, strlen (dot + 1), &mark_len);
    if (! mark || mark_len != ED25519_SIGNATURE_LEN)
        return NULL;
    _cleanup_buf_ struct buf input = { 0 };
    append_signed (&input, payload, (size_t)(dot - payload));
    if (! ed25519_verify (public_key, input.data, input.len, mark))
        return NULL;
    _cleanup_free_ unsigned char *text =
        base64url_decode (payload, (size_t)(dot - payload), &text_len);
    return text ? json_loadb ((const char *)text, text_len, 0, NULL) : NULL;
}

enum formation_verdict
formation_token_verify (const unsigned char public_key[ED25519_KEY_LEN], const char *formation_id,
                        const char *to, const char *token, char **from)
{
    _cleanup_json_ json_t *payload = genuine_payload (public_key, token);
    const char *formation = json_get_string (payload, "formation");
    const char *sender = json_get_string (payload, "from");
    const char *receiver = json_get_string (payload, "to");
    if (! formation || ! sender || ! receiver || json_object_size (payload) != 3 ||
        strcmp (formation, formation_id) != 0)
        return FORMATION_INVALID;
    *from = x_strdup (sender);
    return strcmp (receiver, to) == 0 ? FORMATION_GENUINE : FORMATION_NOT_HERE;
}
