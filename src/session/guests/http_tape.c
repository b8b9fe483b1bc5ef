/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/http_tape.h"

#include "base/alloc.h"
#include "base/json.h"

#include <pthread.h>
#include <string.h>

#define MOST_KEPT ((size_t)64 << 20) /* of one body */

struct http_tape {
    struct tape *tape;
    char *place;
    struct redactor *redactor;
    bool is_driver;
    size_t count; /* requests so far: the guest's thread */
};

/* One exchange. What was sent comes from one thread, what came back from another. */
struct mark {
    struct http_tape *of;
    pthread_mutex_t lock;
    json_t *line, *chunks;
    struct buf sent, got;
    bool is_cut;
};

struct http_tape *
http_tape_new (struct tape *tape, const char *place, struct redactor *redactor, bool is_driver)
{
    struct http_tape *t = x_new0 (struct http_tape);
    *t = (struct http_tape){ tape, x_strdup (place), redactor, is_driver, 0 };
    return t;
}

void
http_tape_free (struct http_tape *t)
{
    if (! t)
        return;
    free (t->place);
    free (t);
}

static void *
began (void *ctx, const struct guest_http_request *request, bool is_refused)
{
    struct http_tape *t = ctx;
    struct mark *m = x_new0 (struct mark);
    _cleanup_free_ char *asked =
        x_asprintf ("%s://%s%s", request->scheme ? request->scheme : "",
                    request->authority ? request->authority : "", request->path_with_query);
    _cleanup_free_ char *url = redactor_apply (t->redactor, asked);
    *m = (struct mark){ .of = t, .line = json_object (), .chunks = json_array () };
    pthread_mutex_init (&m->lock, NULL);
    json_set_string (m->line, "place", t->place);
    json_set_u64 (m->line, "n", t->count++);
    json_set_string (m->line, "method", request->method);
    json_set_string (m->line, "url", url);
    json_set_bool (m->line, "refused", is_refused);
    return m;
}

static void
sent (void *mark, const void *data, size_t len)
{
    struct mark *m = mark;
    pthread_mutex_lock (&m->lock);
    if (m->sent.len + len <= MOST_KEPT)
        buf_append (&m->sent, data, len);
    pthread_mutex_unlock (&m->lock);
}

static void
head (void *mark, int status, const struct http_header *headers, size_t count)
{
    struct mark *m = mark;
    json_t *list = json_array ();
    for (size_t i = 0; i < count; i++) {
        json_t *pair = json_array ();
        _cleanup_free_ char *value = x_strndup (headers[i].value, headers[i].value_len);
        json_array_append_new (pair, json_string (headers[i].name));
        json_array_append_new (pair, utf8_is_valid (value, headers[i].value_len)
                                         ? json_string (value)
                                         : json_string (""));
        json_array_append_new (list, pair);
    }
    pthread_mutex_lock (&m->lock);
    json_object_set_new (m->line, "status", json_integer (status));
    json_object_set_new (m->line, "headers", list);
    pthread_mutex_unlock (&m->lock);
}

static void
body (void *mark, const void *data, size_t len)
{
    struct mark *m = mark;
    pthread_mutex_lock (&m->lock);
    m->is_cut = m->is_cut || m->got.len + len > MOST_KEPT;
    if (! m->is_cut) {
        buf_append (&m->got, data, len);
        json_array_append_new (m->chunks, json_integer ((json_int_t)len));
    }
    pthread_mutex_unlock (&m->lock);
}

static const char *const error_names[] = {
    [GUEST_HTTP_OK] = NULL,
    [GUEST_HTTP_DENIED] = "denied",
    [GUEST_HTTP_DNS_ERROR] = "dns",
    [GUEST_HTTP_CONNECTION_REFUSED] = "connection_refused",
    [GUEST_HTTP_CONNECTION_TERMINATED] = "connection_terminated",
    [GUEST_HTTP_CONNECTION_TIMEOUT] = "connection_timeout",
    [GUEST_HTTP_TLS_ERROR] = "tls",
    [GUEST_HTTP_RESPONSE_INCOMPLETE] = "response_incomplete",
    [GUEST_HTTP_RESPONSE_TIMEOUT] = "response_timeout",
    [GUEST_HTTP_INTERNAL_ERROR] = "internal",
};

enum guest_http_error
http_tape_error (const char *name)
{
    for (size_t i = 1; name && i < ARRAY_LEN (error_names); i++)
        if (str_eq (error_names[i], name))
            return (enum guest_http_error)i;
    return name ? GUEST_HTTP_INTERNAL_ERROR : GUEST_HTTP_OK;
}

static void
failed (void *mark, enum guest_http_error error)
{
    struct mark *m = mark;
    pthread_mutex_lock (&m->lock);
    json_set_string (m->line, "error", error_names[error]);
    pthread_mutex_unlock (&m->lock);
}

/* Text with a secret in it. */
static bool
is_secret (const struct http_tape *t, const struct buf *body)
{
    if (! body->len || ! utf8_is_valid (body->data, body->len) || memchr (body->data, 0, body->len))
        return false;
    _cleanup_free_ char *text = x_strndup (body->data, body->len);
    _cleanup_free_ char *clean = redactor_apply (t->redactor, text);
    return strcmp (text, clean) != 0;
}

static void
keep_body (struct mark *m, const char *key, const struct buf *body, bool is_digest_only)
{
    struct http_tape *t = m->of;
    char sha[SHA256_HEX_LEN + 1];
    _cleanup_free_ char *sha_key = x_asprintf ("%s_sha256", key);
    if (! is_digest_only && ! is_secret (t, body)) {
        tape_put (t->tape, m->line, key, body->data, body->len);
        return;
    }
    sha256_hex (body->data ? body->data : "", body->len, sha);
    json_set_string (m->line, sha_key, sha);
}

static void
ended (void *mark)
{
    struct mark *m = mark;
    struct http_tape *t = m->of;
    keep_body (m, "sent", &m->sent, t->is_driver);
    keep_body (m, "got", &m->got, false);
    json_object_set_new (m->line, "chunks", m->chunks);
    if (m->is_cut)
        json_set_bool (m->line, "cut", true);
    tape_write (t->tape, "http", m->line);
    buf_free (&m->sent);
    buf_free (&m->got);
    pthread_mutex_destroy (&m->lock);
    free (m);
}

const struct guest_http_watch http_tape_watch = {
    .began = began, .sent = sent, .head = head, .body = body, .failed = failed, .ended = ended
};
