/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/otlp_post.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "net/http_fetch.h"

#include <string.h>
#include <time.h>

#define ANSWER_LIMIT_BYTES (64u << 10)
#define TRY_TIMEOUT_MS     10000
#define FIRST_DELAY_MS     1000
#define LONGEST_DELAY_MS   30000
#define TRIES_MAX          5

/* --- a partial success --- */

/* One field of a protobuf message: its number, its varint or its bytes. False at the end or at
 * anything odd. */
static bool
next_field (const unsigned char **at, const unsigned char *end, unsigned *field, uint64_t *number,
            const unsigned char **bytes)
{
    uint64_t values[2] = { 0 };
    for (size_t i = 0; i < 2; i++) {
        unsigned shift = 0;
        do {
            if (*at == end || shift > 63)
                return false;
            values[i] |= (uint64_t)(**at & 0x7f) << shift;
            shift += 7;
        } while (*(*at)++ & 0x80);
    }
    *field = (unsigned)(values[0] >> 3);
    *number = values[1];
    *bytes = NULL;
    if ((values[0] & 7) == 0)
        return true;
    if ((values[0] & 7) != 2 || *number > (uint64_t)(end - *at))
        return false;
    *bytes = *at;
    *at += *number;
    return true;
}

static int64_t
rejected_protobuf (const unsigned char *at, const unsigned char *end, char **message)
{
    unsigned field;
    uint64_t number;
    const unsigned char *bytes;
    while (next_field (&at, end, &field, &number, &bytes))
        if (field == 1 && bytes) {
            const unsigned char *inner_end = bytes + number, *inner = bytes;
            int64_t count = 0;
            while (next_field (&inner, inner_end, &field, &number, &bytes)) {
                if (field == 1 && ! bytes)
                    count = (int64_t)number;
                else if (field == 2 && bytes && ! *message)
                    *message = x_strndup ((const char *)bytes, number);
            }
            return count;
        }
    return 0;
}

static int64_t
rejected_json (const char *body, size_t len, char **message)
{
    _cleanup_json_ json_t *answer = json_loadb (body, len, 0, NULL);
    const json_t *partial = json_object_get (answer, "partialSuccess");
    static const char *const keys[] = { "rejectedSpans", "rejectedDataPoints" };
    const char *words = json_get_string (partial, "errorMessage");
    *message = words ? x_strdup (words) : NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *count = json_object_get (partial, keys[i]);
        if (json_is_integer (count))
            return json_integer_value (count);
        if (json_is_string (count))
            return strtoll (json_string_value (count), NULL, 10);
    }
    return 0;
}

int64_t
otlp_rejected (enum otlp_encoding encoding, const char *body, size_t len, char **message)
{
    *message = NULL;
    if (! len)
        return 0;
    if (encoding == OTLP_JSON || body[0] == '{')
        return rejected_json (body, len, message);
    return rejected_protobuf ((const unsigned char *)body, (const unsigned char *)body + len,
                              message);
}

/* --- one try --- */

static bool
is_retryable (int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Seconds or a date; 0 when it says neither. */
static uint64_t
retry_after_ms (const struct http_response *r)
{
    const char *value = http_response_header (r, "retry-after");
    if (! value)
        return 0;
    char *end;
    unsigned long long seconds = strtoull (value, &end, 10);
    if (end != value && ! *end)
        return seconds > 3600 ? 3600000 : seconds * 1000;
    struct tm when = { 0 };
    if (! strptime (value, "%a, %d %b %Y %H:%M:%S GMT", &when))
        return 0;
    time_t at = timegm (&when), now = (time_t)(clock_unix_ms () / 1000);
    return at > now ? (uint64_t)(at - now) * 1000 : 0;
}

static size_t
fill_headers (const struct otlp_post *p, struct http_header *headers)
{
    const struct otel_settings *s = p->settings;
    const char *type = s->encoding == OTLP_JSON ? "application/json" : "application/x-protobuf";
    headers[0] = (struct http_header){ "content-type", type, strlen (type) };
    for (size_t i = 0; i < s->header_count; i++)
        headers[i + 1] =
            (struct http_header){ s->headers[i].name, secret_reveal (s->headers[i].value),
                                  secret_len (s->headers[i].value) };
    return s->header_count + 1;
}

static void
judge_answer (const struct otlp_post *p, const struct http_response *r, char **why)
{
    _cleanup_free_ char *words = NULL;
    int64_t count = otlp_rejected (p->settings->encoding, r->body.data ? r->body.data : "",
                                   r->body.len, &words);
    if (count > 0 || words)
        *why = x_asprintf ("the collector did not take %lld of them%s%.300s", (long long)count,
                           words ? ": " : "", words ? words : "");
}

enum otlp_fate
otlp_post (const struct otlp_post *p, char **why)
{
    _cleanup_free_ struct http_header *headers =
        x_new_array (struct http_header, p->settings->header_count + 1);
    uint64_t end_ms = clock_monotonic_ms () + p->patience_ms, delay_ms = FIRST_DELAY_MS;
    *why = NULL;
    for (unsigned try = 1;; try++) {
        uint64_t now = clock_monotonic_ms (), left = end_ms > now ? end_ms - now : 0;
        struct http_fetch fetch = {
            .request = { .method = "POST",
                         .url = p->url,
                         .headers = headers,
                         .header_count = fill_headers (p, headers),
                         .body_kind = HTTP_BODY_BUFFER,
                         .body = p->body,
                         .body_len = p->body_len,
                         .uses_proxy_env = true },
            .limit_bytes = ANSWER_LIMIT_BYTES,
            .total_timeout_ms = left < TRY_TIMEOUT_MS ? left + 1 : TRY_TIMEOUT_MS,
            .cancel = p->cancel,
        };
        _cleanup_http_response_ struct http_response r = { 0 };
        _cleanup_error_ struct mur_error *err = NULL;
        enum http_failure failure = HTTP_OK;
        free (steal_ptr (why));
        bool has_answer = http_fetch (p->http, &fetch, &r, &failure, &err);
        if (has_answer && r.status / 100 == 2) {
            judge_answer (p, &r, why);
            return OTLP_SENT;
        }
        *why = has_answer ? x_asprintf ("the collector answered HTTP %d", r.status)
                          : x_strdup (err->message);
        if (has_answer && (r.status == 404 || r.status == 405))
            return OTLP_UNKNOWN;
        if (try == TRIES_MAX ||
            (has_answer ? ! is_retryable (r.status) : ! http_failure_is_transient (failure)))
            return OTLP_REFUSED;
        uint64_t asked = has_answer ? retry_after_ms (&r) : 0;
        uint64_t wait = asked > delay_ms ? asked : delay_ms;
        if (clock_monotonic_ms () + wait >= end_ms)
            return OTLP_REFUSED;
        if (! cancel_sleep (p->hurry, wait))
            try = TRIES_MAX - 1; /* the session ends: one more try, without the wait */
        delay_ms = delay_ms * 2 > LONGEST_DELAY_MS ? LONGEST_DELAY_MS : delay_ms * 2;
    }
}
