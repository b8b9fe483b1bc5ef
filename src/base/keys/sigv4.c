/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keys/sigv4.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <string.h>
#include <time.h>

#define DAY_LEN   8 /* "20130524" */
#define MAC_BYTES 32

void
sigv4_date (uint64_t unix_ms, char out[SIGV4_DATE_LEN + 1])
{
    struct tm tm;
    time_t at = (time_t)(unix_ms / 1000);
    gmtime_r (&at, &tm);
    strftime (out, SIGV4_DATE_LEN + 1, "%Y%m%dT%H%M%SZ", &tm);
}

/* "host;x-amz-date" */
static char *
signed_names (const struct sigv4_request *r)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < r->header_count; i++)
        buf_printf (&out, "%s%s", i ? ";" : "", r->headers[i].name);
    return buf_steal (&out);
}

/* The digest of the request in the one form both sides write it in. */
static void
digest_request (const struct sigv4_request *r, const char *names, char hex[SHA256_HEX_LEN + 1])
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_printf (&text, "%s\n%s\n%s\n", r->method, r->path, r->query);
    for (size_t i = 0; i < r->header_count; i++)
        buf_printf (&text, "%s:%s\n", r->headers[i].name, r->headers[i].value);
    buf_printf (&text, "\n%s\n%s", names, r->payload_sha256);
    sha256_hex (text.data, text.len, hex);
}

/* A key for this day, region and service alone. */
static void
derive_key (const struct sigv4_request *r, const char *date, const struct secret *key,
            unsigned char out[MAC_BYTES])
{
    _cleanup_free_ char *day = x_strndup (date, DAY_LEN);
    const char *const steps[] = { day, r->region, r->service, "aws4_request" };
    char *first = x_asprintf ("AWS4%s", secret_reveal (key));
    unsigned char before[MAC_BYTES];
    hmac_sha256 (first, strlen (first), steps[0], strlen (steps[0]), out);
    for (size_t i = 1; i < ARRAY_LEN (steps); i++) {
        memcpy (before, out, sizeof before);
        hmac_sha256 (before, sizeof before, steps[i], strlen (steps[i]), out);
    }
    secret_wipe (before, sizeof before);
    secret_wipe (first, strlen (first));
    free (first);
}

char *
sigv4_authorization (const struct sigv4_request *r, const char *key_id, const struct secret *key)
{
    char date[SIGV4_DATE_LEN + 1], hex[SHA256_HEX_LEN + 1], signature[2 * MAC_BYTES + 1];
    unsigned char day_key[MAC_BYTES], mac[MAC_BYTES];
    sigv4_date (r->unix_ms, date);
    _cleanup_free_ char *names = signed_names (r);
    _cleanup_free_ char *scope =
        x_asprintf ("%.*s/%s/%s/aws4_request", DAY_LEN, date, r->region, r->service);
    digest_request (r, names, hex);
    _cleanup_free_ char *text = x_asprintf ("AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, hex);
    derive_key (r, date, key, day_key);
    hmac_sha256 (day_key, sizeof day_key, text, strlen (text), mac);
    secret_wipe (day_key, sizeof day_key);
    hex_encode (mac, sizeof mac, signature);
    return x_asprintf ("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", key_id,
                       scope, names, signature);
}
