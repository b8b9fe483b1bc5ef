/* SPDX-License-Identifier: Apache-2.0
 *
 * MAC tokens. See token.h.
 */
#include "base/token.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/secret.h"

#include <string.h>

const struct token_family token_spawn_credential = { "msc1", "murmur-spawn-credential-v1" };
const struct token_family token_spawn_approval = { "msa1", "murmur-spawn-approval-v1" };
const struct token_family token_door = { "mdt1", "murmur-door-token-v1" };
const struct token_family token_peer_handle = { "mh1", "murmur-peer-handle-v1" };
const struct token_family token_control = { "ctl1", "murmur-control-token-v1" };

#define SEPARATOR '\x1f'
#define MAX_TOKEN 16384

static void
sign (const struct token_family *family, const unsigned char *key, const char *payload,
      size_t payload_len, const char *bound, unsigned char mac[32])
{
    _cleanup_buf_ struct buf input = { 0 };
    buf_printf (&input, "%s%c", family->domain, SEPARATOR);
    buf_append (&input, payload, payload_len);
    if (bound)
        buf_printf (&input, "%c%s", SEPARATOR, bound);
    hmac_sha256 (key, TOKEN_KEY_LEN, input.data, input.len, mac);
}

char *
token_mint (const struct token_family *family, const unsigned char key[TOKEN_KEY_LEN],
            const json_t *payload, const char *bound)
{
    unsigned char mac[32];
    _cleanup_free_ char *text = json_text (payload, JSON_TEXT_ORDERED);
    _cleanup_free_ char *segment = base64url_encode (text, strlen (text));
    sign (family, key, segment, strlen (segment), bound, mac);
    _cleanup_free_ char *signature = base64url_encode (mac, sizeof mac);
    return x_asprintf ("%s.%s.%s", family->tag, segment, signature);
}

json_t *
token_verify (const struct token_family *family, const unsigned char key[TOKEN_KEY_LEN],
              const char *token, const char *bound)
{
    size_t tag_len = strlen (family->tag);
    if (strlen (token) > MAX_TOKEN || strncmp (token, family->tag, tag_len) != 0 ||
        token[tag_len] != '.')
        return NULL;
    const char *payload = token + tag_len + 1;
    const char *dot = strchr (payload, '.');
    if (! dot || dot == payload)
        return NULL;
    size_t mac_len, text_len;
    _cleanup_free_ unsigned char *given = base64url_decode (dot + 1, strlen (dot + 1), &mac_len);
    unsigned char mac[32];
    sign (family, key, payload, (size_t)(dot - payload), bound, mac);
    if (! given || mac_len != sizeof mac || ! bytes_equal_ct (given, mac, sizeof mac))
        return NULL;
    _cleanup_free_ unsigned char *text =
        base64url_decode (payload, (size_t)(dot - payload), &text_len);
    json_t *value = text ? json_loadb ((const char *)text, text_len, 0, NULL) : NULL;
    if (json_is_object (value))
        return value;
    json_decref (value);
    return NULL;
}

void
token_loggable_id (const char *token, char out[17])
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (token, strlen (token), hex);
    memcpy (out, hex, 16);
    out[16] = '\0';
}
