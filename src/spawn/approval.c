/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking for an approval. See approval.h.
 */
#include "spawn/approval.h"

#include "base/alloc.h"
#include "base/json.h"

#include <string.h>

#define TIMEOUT_MS   30000
#define ANSWER_LIMIT ((size_t)1 << 20)

void
approval_clear (struct approval *a)
{
    secret_free (a->token);
    *a = (struct approval){ 0 };
}

/* Status and body of the answer only: nothing of what was sent. */
static bool
refuse (const struct http_response *r, struct mur_error **err)
{
    _cleanup_json_ json_t *body = json_loadb (r->body.data, r->body.len, 0, NULL);
    const char *said = json_get_string (body, "error");
    if (said)
        return mur_fail (err, E_RUN_007, "%s", said);
    return mur_fail (err, E_RUN_007, "mur-roost answered %d: %.*s", r->status,
                     (int)utf8_cut (r->body.data ? r->body.data : "", r->body.len, 500),
                     r->body.data ? r->body.data : "");
}

static bool
accept (const struct http_response *r, struct approval *out, struct mur_error **err)
{
    _cleanup_json_ json_t *body = json_loadb (r->body.data, r->body.len, 0, NULL);
    const char *token = json_get_string (body, "approval");
    if (! token || ! *token)
        return mur_fail (err, E_RUN_007, "the answer of mur-roost has no field approval");
    const char *sha256 = json_get_string (body, "sha256");
    *out = (struct approval){ .token = secret_new (token, strlen (token)) };
    if (sha256 && strlen (sha256) < sizeof out->sha256)
        memcpy (out->sha256, sha256, strlen (sha256) + 1);
    json_get_u64 (body, "expires_at_ms", &out->expires_ms);
    return true;
}

bool
approval_ask (struct http_client *http, const char *roost_url, const struct secret *credential,
              const char *name, const char *version, struct approval *out, struct mur_error **err)
{
    *out = (struct approval){ 0 };
    size_t base = strlen (roost_url);
    while (base && roost_url[base - 1] == '/')
        base--;
    if (! str_starts (roost_url, "http://"))
        return mur_fail (err, E_RUN_007, "mur-roost is asked over http only, not at %s", roost_url);
    _cleanup_free_ char *url = x_asprintf ("%.*s/spawn", (int)base, roost_url);
    _cleanup_json_ json_t *ask = json_object ();
    json_set_string (ask, "name", name);
    json_set_string (ask, "version", version);
    _cleanup_free_ char *text = json_text (ask, JSON_TEXT_ORDERED);
    const char *token = secret_reveal (credential);
    const struct http_header headers[] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "x-murmur-spawn-credential", token, strlen (token) },
    };
    const struct http_fetch fetch = { .request = { .method = "POST",
                                                   .url = url,
                                                   .headers = headers,
                                                   .header_count = ARRAY_LEN (headers),
                                                   .body_kind = HTTP_BODY_BUFFER,
                                                   .body = text,
                                                   .body_len = strlen (text),
                                                   .connect_timeout_ms = TIMEOUT_MS,
                                                   .first_byte_timeout_ms = TIMEOUT_MS,
                                                   .between_bytes_timeout_ms = TIMEOUT_MS },
                                      .limit_bytes = ANSWER_LIMIT };
    struct http_response response = { 0 };
    struct mur_error *fault = NULL;
    if (! http_fetch (http, &fetch, &response, NULL, &fault)) {
        mur_fail (err, E_RUN_007, "mur-roost at %s: %s", roost_url, fault->message);
        mur_error_free (fault);
        return false;
    }
    bool is_granted =
        response.status / 100 == 2 ? accept (&response, out, err) : refuse (&response, err);
    if (response.body.data)
        explicit_bzero (response.body.data, response.body.len);
    http_response_free (&response);
    return is_granted;
}
