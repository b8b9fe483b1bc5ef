/* SPDX-License-Identifier: Apache-2.0
 *
 * GitHub over HTTP: four questions, and what a refusal of theirs means to a person.
 */
#include "artifact/sources/github.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "net/http_fetch.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define TIMEOUT_MS     30000
#define JSON_BYTES_MAX (8u * 1024 * 1024)
#define REDIRECTS_MAX  5
#define MESSAGE_MAX    400

static const char default_base[] = "https://api.github.com";

void
github_init (struct github *g)
{
    const char *base = getenv ("MUR_GITHUB_API_BASE");
    g->http = http_client_new ();
    g->base = x_strdup (base && base[0] ? base : default_base);
    for (size_t len = strlen (g->base); len > 0 && g->base[len - 1] == '/'; len--)
        g->base[len - 1] = '\0';
}

void
github_clear (struct github *g)
{
    if (g->http)
        http_client_free (g->http);
    free (g->base);
    *g = (struct github){ 0 };
}

void
github_release_free (struct github_release *r)
{
    for (size_t i = 0; i < r->count; i++)
        free (r->assets[i].name);
    free (r->assets);
    free (r->tag);
    free (r);
}

const struct github_asset *
github_find_asset (const struct github_release *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp (r->assets[i].name, name) == 0)
            return &r->assets[i];
    return NULL;
}

/* --- what a refusal says --- */

static bool
contains_ignoring_case (const char *text, const char *word)
{
    return text && strcasestr (text, word);
}

/* 403 is ambiguous: a blocked token or a sign-on page must not be taken for a rate limit, so
 * headers speak before the text. */
static bool
is_rate_limited (const struct http_response *r)
{
    if (r->status == 429)
        return true;
    if (r->status != 403)
        return false;
    const char *remaining = http_response_header (r, "x-ratelimit-remaining");
    return str_eq (remaining, "0") || http_response_header (r, "retry-after") ||
           contains_ignoring_case (r->body.data, "rate limit");
}

static bool
parse_seconds (const char *text, uint64_t *value)
{
    if (! text || ! isdigit ((unsigned char)text[0]) || strlen (text) > 12)
        return false;
    char *end;
    *value = strtoull (text, &end, 10);
    return *end == '\0';
}

/* Whole minutes until the limit is lifted, rounded up, at least 1; 0 when nothing tells. */
static uint64_t
reset_minutes (const struct http_response *r)
{
    uint64_t seconds;
    if (! parse_seconds (http_response_header (r, "retry-after"), &seconds)) {
        uint64_t at, now = clock_unix_ms () / 1000;
        if (! parse_seconds (http_response_header (r, "x-ratelimit-reset"), &at))
            return 0;
        seconds = at > now ? at - now : 0;
    }
    uint64_t minutes = (seconds + 59) / 60;
    return minutes ? minutes : 1;
}

/* The JSON `message`, else the body, as one short line. */
static char *
answer_text (const struct http_response *r)
{
    const char *body = r->body.data ? r->body.data : "";
    _cleanup_json_ json_t *json = json_parse (body, r->body.len, "answer", E_REG_006, NULL);
    const char *message = json_get_string (json, "message");
    struct buf line = { 0 };
    for (const char *at = message ? message : body; *at && line.len < MESSAGE_MAX; at++) {
        bool is_space = isspace ((unsigned char)*at) || (unsigned char)*at < 0x20;
        if (! is_space)
            buf_putc (&line, *at);
        else if (line.len && line.data[line.len - 1] != ' ')
            buf_putc (&line, ' ');
    }
    while (line.len && line.data[line.len - 1] == ' ')
        buf_truncate (&line, line.len - 1);
    buf_truncate (&line, utf8_cut (line.data ? line.data : "", line.len, MESSAGE_MAX));
    return buf_steal (&line);
}

static bool
refuse (const struct github_repo *repo, const struct http_response *r, struct mur_error **err)
{
    _cleanup_free_ char *text = answer_text (r);
    const char *colon = text[0] ? ": " : "";
    if (! is_rate_limited (r))
        return mur_fail (err, E_REG_006, "github:%s/%s answered HTTP %d%s%s", repo->owner,
                         repo->name, r->status, colon, text);
    uint64_t minutes = reset_minutes (r);
    _cleanup_free_ char *when =
        minutes ? x_asprintf ("; the limit resets in %llu minute%s", (unsigned long long)minutes,
                              minutes == 1 ? "" : "s")
                : x_strdup ("");
    mur_fail (err, E_REG_006, "github:%s/%s: rate limit reached (HTTP %d)%s%s%s", repo->owner,
              repo->name, r->status, colon, text, when);
    if (repo->token)
        return mur_hint (err, "the token's own limit is exhausted; wait for the reset");
    return mur_hint (err, "set GITHUB_TOKEN, or `token` of the source, for a much higher limit");
}

/* --- asking --- */

enum answer {
    ANSWER_OK,
    ANSWER_ABSENT, /* 404 */
    ANSWER_FAILED, /* *err is set */
};

static enum answer
ask (const struct github *g, const struct github_repo *repo, const char *path, bool wants_bytes,
     size_t limit, struct http_response *response, struct mur_error **err)
{
    _cleanup_free_ char *url =
        x_asprintf ("%s/repos/%s/%s%s", g->base, repo->owner, repo->name, path);
    struct http_header headers[3] = { { "user-agent", "murmur-cli", 10 } };
    const char *accept = wants_bytes ? "application/octet-stream" : "application/vnd.github+json";
    headers[1] = (struct http_header){ "accept", accept, strlen (accept) };
    _cleanup_free_ char *authorization = NULL;
    size_t count = 2;
    if (repo->token) {
        authorization = x_asprintf ("Bearer %s", secret_reveal (repo->token));
        headers[count++] =
            (struct http_header){ "authorization", authorization, strlen (authorization) };
    }
    struct http_fetch fetch = {
        .request = { .method = "GET",
                     .url = url,
                     .headers = headers,
                     .header_count = count,
                     .connect_timeout_ms = TIMEOUT_MS,
                     .first_byte_timeout_ms = TIMEOUT_MS,
                     .between_bytes_timeout_ms = TIMEOUT_MS,
                     .uses_proxy_env = true },
        .limit_bytes = limit,
        .redirect_limit = REDIRECTS_MAX,
        .cancel = g->cancel,
    };
    _cleanup_error_ struct mur_error *caught = NULL;
    bool ok = http_fetch (g->http, &fetch, response, NULL, &caught);
    if (authorization)
        secret_wipe (authorization, strlen (authorization));
    if (! ok) {
        mur_fail (err, E_REG_006, "github:%s/%s did not answer: %s", repo->owner, repo->name,
                  caught->message);
        return ANSWER_FAILED;
    }
    if (response->status == 404)
        return ANSWER_ABSENT;
    if (response->status >= 200 && response->status < 300)
        return ANSWER_OK;
    refuse (repo, response, err);
    return ANSWER_FAILED;
}

/* Asks for JSON. NULL with *err unset when it is not there. */
static json_t *
ask_json (const struct github *g, const struct github_repo *repo, const char *path,
          struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    if (ask (g, repo, path, false, JSON_BYTES_MAX, &r, err) != ANSWER_OK)
        return NULL;
    _cleanup_free_ char *what = x_asprintf ("answer of github:%s/%s", repo->owner, repo->name);
    return json_parse (r.body.data ? r.body.data : "", r.body.len, what, E_REG_006, err);
}

bool
github_owner_id (const struct github *g, const struct github_repo *repo, uint64_t *id,
                 struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_json_ json_t *json = ask_json (g, repo, "", &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    if (! json)
        return mur_fail (err, E_REG_001,
                         "there is no repository github:%s/%s (or its token may not "
                         "see it)",
                         repo->owner, repo->name);
    return json_get_u64 (json_object_get (json, "owner"), "id", id) ||
           mur_fail (err, E_REG_006, "github:%s/%s: the answer names no owner.id", repo->owner,
                     repo->name);
}

static struct github_release *
read_release (const struct github_repo *repo, const json_t *json, struct mur_error **err)
{
    const char *tag = json_get_string (json, "tag_name");
    const json_t *assets = json_object_get (json, "assets");
    if (! tag || ! json_is_array (assets))
        return mur_fail (err, E_REG_006, "github:%s/%s: the answer is no release", repo->owner,
                         repo->name),
               NULL;
    struct github_release *r = x_new0 (struct github_release);
    r->tag = x_strdup (tag);
    r->assets = x_new_array (struct github_asset, json_array_size (assets) + 1);
    size_t i;
    json_t *item;
    json_array_foreach (assets, i, item)
    {
        uint64_t id;
        const char *name = json_get_string (item, "name");
        if (name && json_get_u64 (item, "id", &id))
            r->assets[r->count++] = (struct github_asset){ id, x_strdup (name) };
    }
    return r;
}

static struct github_release *
ask_release (const struct github *g, const struct github_repo *repo, const char *path,
             struct mur_error **err)
{
    _cleanup_json_ json_t *json = ask_json (g, repo, path, err);
    return json ? read_release (repo, json, err) : NULL;
}

struct github_release *
github_release_latest (const struct github *g, const struct github_repo *repo,
                       struct mur_error **err)
{
    return ask_release (g, repo, "/releases/latest", err);
}

/* A tag as one or more path segments: everything but unreserved characters and '/' is escaped. */
static char *
escape_tag (const char *tag)
{
    struct buf out = { 0 };
    for (const unsigned char *at = (const unsigned char *)tag; *at; at++) {
        if (isalnum (*at) || strchr ("-._~/+", *at))
            buf_putc (&out, (char)*at);
        else
            buf_printf (&out, "%%%02X", *at);
    }
    return buf_steal (&out);
}

struct github_release *
github_release_by_tag (const struct github *g, const struct github_repo *repo, const char *tag,
                       struct mur_error **err)
{
    _cleanup_free_ char *escaped = escape_tag (tag);
    _cleanup_free_ char *path = x_asprintf ("/releases/tags/%s", escaped);
    return ask_release (g, repo, path, err);
}

bool
github_download (const struct github *g, const struct github_repo *repo,
                 const struct github_asset *asset, size_t limit, struct buf *out,
                 struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("/releases/assets/%llu", (unsigned long long)asset->id);
    _cleanup_http_response_ struct http_response r = { 0 };
    switch (ask (g, repo, path, true, limit, &r, err)) {
    case ANSWER_OK:
        *out = r.body;
        r.body = (struct buf){ 0 };
        return true;
    case ANSWER_ABSENT:
        return mur_fail (err, E_REG_001, "github:%s/%s: asset %s is gone", repo->owner, repo->name,
                         asset->name);
    case ANSWER_FAILED:
        break;
    }
    return false;
}
