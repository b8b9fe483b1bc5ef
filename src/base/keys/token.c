/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keys/token.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/secret.h"

#include <string.h>

const struct token_family token_spawn_credential = { "msc1", "murmur-spawn-credential-v1" };
const struct token_family token_spawn_approval = { "msa1", "murmur-spawn-approval-v1" };
const struct token_family token_door = { "mdt1", "murmur-door-token-v1" };
const struct token_family token_peer_handle = { "mh1", "murmur-peer-handle-v1" };
const struct token_family token_child_ticket = { "mct1", "murmur-child-ticket-v1" };
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

static bool
is_segment (const char *text, size_t len)
{
    size_t decoded_len;
    _cleanup_free_ unsigned char *decoded = len ? base64url_decode (text, len, &decoded_len) : NULL;
    return decoded != NULL;
}

bool
token_has_shape (const struct token_family *family, const char *token)
{
    size_t tag_len = strlen (family->tag);
    if (strlen (token) > MAX_TOKEN || strncmp (token, family->tag, tag_len) != 0 ||
        token[tag_len] != '.')
        return false;
    const char *payload = token + tag_len + 1, *dot = strchr (payload, '.');
    return dot && is_segment (payload, (size_t)(dot - payload)) &&
           is_segment (dot + 1, strlen (dot + 1));
}

/* The length of what may be a token at <text>: tag, two dots, base64url digits. 0 for anything
 * else. */
static size_t
token_length (const char *text, size_t tag_len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t payload = strspn (text + tag_len + 1, digits);
    const char *dot = text + tag_len + 1 + payload;
    size_t mac = payload && *dot == '.' ? strspn (dot + 1, digits) : 0;
    return mac ? (size_t)(dot + 1 - text) + mac : 0;
}

void
token_scrub (const struct token_family *family, struct buf *text, size_t start)
{
    char tag[8];
    size_t tag_len = strlen (family->tag);
    snprintf (tag, sizeof tag, "%s.", family->tag);
    const char *at =
        text->len > start ? memmem (text->data + start, text->len - start, tag, tag_len + 1) : NULL;
    if (! at)
        return;
    struct buf clean = { 0 };
    const char *from = text->data, *end = text->data + text->len;
    for (; at; at = memmem (at, (size_t)(end - at), tag, tag_len + 1)) {
        size_t len = token_length (at, tag_len);
        if (! len) {
            at += tag_len;
            continue;
        }
        _cleanup_free_ char *token = x_strndup (at, len);
        char id[17];
        token_loggable_id (token, id);
        buf_append (&clean, from, (size_t)(at - from));
        buf_printf (&clean, "<handle:%s>", id);
        from = at += len;
    }
    buf_append (&clean, from, (size_t)(end - from));
    buf_free (text);
    *text = clean;
}

void
token_loggable_id (const char *token, char out[17])
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (token, strlen (token), hex);
    memcpy (out, hex, 16);
    out[16] = '\0';
}
