/* SPDX-License-Identifier: Apache-2.0
 *
 * A list and what changes in it: pages first, then a stream of lines from there on, taken up again
 * where it broke off. 410 says the server no longer knows that place: then from the beginning.
 */
#include "net/kube/kube_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/kube/kube_internal.h"

#include <string.h>

#define PAGE          100
#define STREAM_S      300 /* after which the server ends one; it is taken up again */
#define SILENCE_MS    ((STREAM_S + 30) * 1000) /* a stream nobody ends is dead */
#define LINE_BYTES    ((size_t)16 << 20)
#define WAIT_FIRST_MS 200
#define WAIT_MOST_MS  5000

struct watching {
    struct kube *kube;
    const struct kube_watcher *w;
    struct cancel *cancel;
    char *version;   /* how far we are; NULL: nowhere */
    struct buf line; /* the piece of a line that has come */
    bool is_stale;   /* the server has forgotten <version> */
    bool has_heard;  /* something of this stream was taken */
};

static void
set_version (struct watching *s, const json_t *object)
{
    const char *version = json_get_string (json_object_get (object, "metadata"), "resourceVersion");
    if (! version || ! *version)
        return;
    free (s->version);
    s->version = x_strdup (version);
}

static char *
path_with (const struct watching *s, const char *more)
{
    return x_asprintf ("%s?%s%s%s", s->w->path, s->w->query ? s->w->query : "",
                       s->w->query ? "&" : "", more);
}

static void
tell_trouble (struct watching *s, const char *why)
{
    if (s->w->trouble && ! cancel_is_raised (s->cancel))
        s->w->trouble (s->w->ctx, why);
}

/* --- the list --- */

/* One page; *more is where the next begins (owned), NULL after the last. */
static bool
read_page (struct watching *s, char **more, struct mur_error **err)
{
    _cleanup_free_ char *from = *more ? kube_escape (*more) : NULL;
    _cleanup_free_ char *query =
        x_asprintf ("limit=%d%s%s", PAGE, from ? "&continue=" : "", from ? from : "");
    _cleanup_free_ char *path = path_with (s, query);
    const struct kube_call call = { .method = "GET", .path = path, .cancel = s->cancel };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    free (steal_ptr (more));
    if (! kube_call (s->kube, &call, &a, err))
        return false;
    if (! kube_answer_is_ok (&a))
        return mur_fail (err, E_KUB_002, "listing %s: %d %s", s->w->path, a.status, a.message);
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (a.body, "items"), i, item) s->w->object (s->w->ctx, item);
    const char *next = json_get_string (json_object_get (a.body, "metadata"), "continue");
    *more = next && *next ? x_strdup (next) : NULL;
    if (! *more)
        set_version (s, a.body);
    return true;
}

/* A list that broke off is begun again; nothing is gone before it is whole. */
static bool
list_all (struct watching *s)
{
    _cleanup_error_ struct mur_error *err = NULL;
    char *more = NULL;
    s->w->begin (s->w->ctx);
    do
        if (! read_page (s, &more, &err)) {
            tell_trouble (s, err->message);
            return false;
        }
    while (more);
    s->w->end (s->w->ctx);
    return true;
}

/* --- the stream --- */

static void
take_line (struct watching *s, const char *text, size_t len)
{
    _cleanup_json_ json_t *event = json_loadb (text, len, 0, NULL);
    const char *type = json_get_string (event, "type");
    const json_t *object = json_object_get (event, "object");
    if (! type || ! json_is_object (object))
        return;
    s->has_heard = true;
    if (str_eq (type, "ERROR")) {
        s->is_stale = true; /* 410, or anything else we cannot go on from */
        return;
    }
    set_version (s, object);
    if (str_eq (type, "DELETED"))
        s->w->gone (s->w->ctx, object);
    else if (! str_eq (type, "BOOKMARK"))
        s->w->object (s->w->ctx, object);
}

static bool
on_bytes (void *ctx, const void *data, size_t len)
{
    struct watching *s = ctx;
    buf_append (&s->line, data, len);
    if (s->line.len > LINE_BYTES)
        return false;
    size_t at = 0;
    for (char *end;
         at < s->line.len && (end = memchr (s->line.data + at, '\n', s->line.len - at));) {
        size_t line_len = (size_t)(end - s->line.data) - at;
        take_line (s, s->line.data + at, line_len);
        at += line_len + 1;
    }
    memmove (s->line.data, s->line.data + at, s->line.len - at);
    buf_truncate (&s->line, s->line.len - at);
    return ! s->is_stale && ! cancel_is_raised (s->cancel);
}

static bool
follow (struct watching *s)
{
    char query[200];
    _cleanup_error_ struct mur_error *err = NULL;
    snprintf (query, sizeof query,
              "watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%.100s",
              STREAM_S, s->version);
    _cleanup_free_ char *path = path_with (s, query);
    _cleanup_free_ char *url = kube_url (s->kube, path);
    _cleanup_free_ char *bearer = kube_bearer (s->kube);
    const struct http_header headers[] = {
        { "accept", "application/json", strlen ("application/json") },
        { "authorization", bearer, bearer ? strlen (bearer) : 0 },
    };
    const struct http_fetch fetch = { .request = { .method = "GET",
                                                   .url = url,
                                                   .headers = headers,
                                                   .header_count = bearer ? 2 : 1,
                                                   .between_bytes_timeout_ms = SILENCE_MS },
                                      .limit_bytes = (size_t)1 << 20,
                                      .cancel = s->cancel,
                                      .sink = on_bytes,
                                      .sink_ctx = s };
    struct http_response response = { 0 };
    s->is_stale = s->has_heard = false;
    buf_truncate (&s->line, 0);
    bool is_heard = http_fetch (s->kube->http, &fetch, &response, NULL, &err);
    s->is_stale = s->is_stale || (is_heard && response.status == 410);
    bool is_refused = is_heard && response.status / 100 != 2;
    if (is_refused && ! s->is_stale)
        mur_fail (&err, E_KUB_002, "watching %s: the API server answered %d", s->w->path,
                  response.status);
    if (err && ! s->is_stale)
        tell_trouble (s, err->message);
    http_response_free (&response);
    return (is_heard && ! is_refused) || s->has_heard;
}

void
kube_watch (struct kube *k, const struct kube_watcher *w, struct cancel *cancel)
{
    struct watching s = { .kube = k, .w = w, .cancel = cancel };
    uint64_t wait_ms = WAIT_FIRST_MS;
    while (! cancel_is_raised (cancel)) {
        bool is_well = s.version ? follow (&s) : list_all (&s);
        if (s.is_stale) {
            free (steal_ptr (&s.version));
            s.is_stale = false;
        }
        if (is_well) {
            wait_ms = WAIT_FIRST_MS;
            continue;
        }
        cancel_sleep (cancel, wait_ms);
        wait_ms = wait_ms * 2 > WAIT_MOST_MS ? WAIT_MOST_MS : wait_ms * 2;
    }
    free (s.version);
    buf_free (&s.line);
}
