/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include "base/alloc.h"

#include <errno.h>
/* The plain SHA-256 functions: deprecated in favour of an interface that links all of libcrypto. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/random.h>

void
hex_encode (const void *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * len] = '\0';
}

static void
sha256_bytes (const void *data, size_t len, unsigned char out[32])
{
    SHA256_CTX context;
    SHA256_Init (&context);
    SHA256_Update (&context, data, len);
    SHA256_Final (out, &context);
}

void
sha256_hex (const void *data, size_t len, char out[SHA256_HEX_LEN + 1])
{
    unsigned char raw[32];
    sha256_bytes (data, len, raw);
    hex_encode (raw, sizeof raw, out);
}

bool
sha256_hex_fd_upto (int fd, uint64_t limit, char out[SHA256_HEX_LEN + 1])
{
    SHA256_CTX context;
    unsigned char raw[32];
    char chunk[65536];
    SHA256_Init (&context);
    while (limit) {
        ssize_t n = read (fd, chunk, limit < sizeof chunk ? (size_t)limit : sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            break;
        SHA256_Update (&context, chunk, (size_t)n);
        limit -= (uint64_t)n;
    }
    SHA256_Final (raw, &context);
    hex_encode (raw, sizeof raw, out);
    return true;
}

struct sha256 {
    SHA256_CTX context;
};

struct sha256 *
sha256_new (void)
{
    struct sha256 *d = x_new0 (struct sha256);
    SHA256_Init (&d->context);
    return d;
}

void
sha256_add (struct sha256 *d, const void *data, size_t len)
{
    SHA256_Update (&d->context, data, len);
}

void
sha256_finish (struct sha256 *d, char out[SHA256_HEX_LEN + 1])
{
    unsigned char raw[32];
    SHA256_Final (raw, &d->context);
    hex_encode (raw, sizeof raw, out);
    free (d);
}

/* RFC 2104. libcrypto's own HMAC would bring every algorithm it knows into the program. */
void
hmac_sha256 (const void *key, size_t key_len, const void *data, size_t len, unsigned char out[32])
{
    unsigned char inner[SHA256_CBLOCK] = { 0 }, outer[SHA256_CBLOCK], short_key[32];
    if (key_len > sizeof inner) {
        sha256_bytes (key, key_len, short_key);
        key = short_key;
        key_len = sizeof short_key;
    }
    memcpy (inner, key, key_len);
    for (size_t i = 0; i < sizeof inner; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    SHA256_CTX context;
    SHA256_Init (&context);
    SHA256_Update (&context, inner, sizeof inner);
    SHA256_Update (&context, data, len);
    SHA256_Final (out, &context);
    SHA256_Init (&context);
    SHA256_Update (&context, outer, sizeof outer);
    SHA256_Update (&context, out, 32);
    SHA256_Final (out, &context);
    explicit_bzero (inner, sizeof inner);
    explicit_bzero (outer, sizeof outer);
    explicit_bzero (short_key, sizeof short_key);
    explicit_bzero (&context, sizeof context);
}

bool
sha256_hex_is_valid (const char *text)
{
    return strlen (text) == SHA256_HEX_LEN && strspn (text, "0123456789abcdef") == SHA256_HEX_LEN;
}

static const char base64url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *
base64url_encode (const void *data, size_t len)
{
    const unsigned char *in = data;
    char *out = x_malloc (len / 3 * 4 + 5);
    char *at = out;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned group = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
                         (left > 2 ? in[i + 2] : 0U);
        *at++ = base64url_digits[group >> 18];
        *at++ = base64url_digits[group >> 12 & 63];
        if (left > 1)
            *at++ = base64url_digits[group >> 6 & 63];
        if (left > 2)
            *at++ = base64url_digits[group & 63];
    }
    *at = '\0';
    return out;
}

unsigned char *
base64url_decode (const char *text, size_t len, size_t *out_len)
{
    if (len % 4 == 1)
        return NULL;
    _cleanup_free_ unsigned char *out = x_malloc (len / 4 * 3 + 3);
    size_t n = 0;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < len; i++) {
        const char *digit = text[i] ? strchr (base64url_digits, text[i]) : NULL;
        if (! digit)
            return NULL;
        bits = bits << 6 | (unsigned)(digit - base64url_digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[n++] = (unsigned char)(bits >> held);
            bits &= (1U << held) - 1;
        }
    }
    if (bits)
        return NULL;
    *out_len = n;
    return steal_ptr (&out);
}

char *
base64_encode (const void *data, size_t len)
{
    struct buf out = { 0 };
    _cleanup_free_ char *url = base64url_encode (data, len);
    buf_puts (&out, url);
    while (out.len % 4)
        buf_putc (&out, '=');
    for (size_t i = 0; i < out.len; i++)
        out.data[i] = out.data[i] == '-' ? '+' : out.data[i] == '_' ? '/' : out.data[i];
    return buf_steal (&out);
}

unsigned char *
base64_decode (const char *text, size_t len, size_t *out_len)
{
    while (len && text[len - 1] == '=')
        len--;
    _cleanup_free_ char *url = x_strndup (text, len);
    for (size_t i = 0; i < len; i++) {
        if (url[i] == '-' || url[i] == '_')
            return NULL;
        url[i] = url[i] == '+' ? '-' : url[i] == '/' ? '_' : url[i];
    }
    if (strlen (url) != len)
        return NULL;
    unsigned char *bytes = base64url_decode (url, len, out_len);
    if (! bytes)
        return NULL;
    bytes = x_realloc (bytes, *out_len + 1);
    bytes[*out_len] = '\0';
    return bytes;
}

bool
bytes_equal_ct (const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp (a, b, len) == 0;
}

void
random_bytes (void *out, size_t len)
{
    unsigned char *at = out;
    while (len) {
        ssize_t n = getrandom (at, len, 0);
        if (n < 0)
            continue;
        at += n;
        len -= (size_t)n;
    }
}
