/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_client.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "net/http_prepare.h"
#include "net/http_thread.h"
#include "net/http_transfer.h"
#include "net/url.h"

#include <signal.h>
#include <string.h>

#define DEFAULT_CONNECT_TIMEOUT_MS 30000

struct http_client *
http_client_new (void)
{
    struct http_client *c = x_new0 (struct http_client);
    atomic_init (&c->refs, 1);
    pthread_mutex_init (&c->lock, NULL);
    pthread_cond_init (&c->woken, NULL);
    c->queue_end = &c->queue;
    return c;
}

void
http_client_trust (struct http_client *c, const char *ca, const char *cert, const char *key)
{
    const struct {
        char **to;
        const char *text;
    } all[] = { { &c->ca_pem, ca }, { &c->cert_pem, cert }, { &c->key_pem, key } };
    for (size_t i = 0; i < ARRAY_LEN (all); i++) {
        free (*all[i].to);
        *all[i].to = all[i].text ? x_strdup (all[i].text) : NULL;
    }
}

/* Under the client's lock. */
static void
ensure_thread (struct http_client *c)
{
    if (c->has_thread || c->is_stopping)
        return;
    c->has_thread = thread_start (&c->thread, http_client_run, c) == 0;
    if (c->has_thread)
        pthread_setname_np (c->thread, "mur-http");
}

void
http_client_load (void)
{
    const char *why;
    (void)curl_api_get (&why); /* a fault is told by the first request */
}

void
http_client_warm (struct http_client *c)
{
    pthread_mutex_lock (&c->lock);
    ensure_thread (c);
    pthread_mutex_unlock (&c->lock);
}

static void
wake (struct http_client *c)
{
    if (c->multi)
        c->api->multi_wakeup (c->multi);
    else
        pthread_cond_signal (&c->woken);
}

void
http_client_free (struct http_client *c)
{
    if (! c)
        return;
    pthread_mutex_lock (&c->lock);
    c->is_stopping = true;
    wake (c);
    bool has_thread = c->has_thread;
    pthread_mutex_unlock (&c->lock);
    if (has_thread)
        pthread_join (c->thread, NULL);
    pthread_mutex_lock (&c->lock);
    c->multi = NULL;
    struct http_transfer *queue = c->queue;
    c->queue = NULL;
    c->queue_end = &c->queue;
    pthread_mutex_unlock (&c->lock);
    while (queue) { /* left between the thread's last look and now */
        struct http_transfer *t = queue;
        queue = t->next_queued;
        bool has_begun = ! (t->wishes & WISH_START);
        if (! has_begun) {
            http_deliver_end (t, HTTP_INTERNAL, "the session is ending");
            http_transfer_unref (t);
        }
        http_transfer_unref (t);
    }
    http_client_unref (c);
}

static void
wish (struct http_transfer *t, enum wish what)
{
    struct http_client *c = t->client;
    pthread_mutex_lock (&c->lock);
    ensure_thread (c);
    bool is_over = ! c->has_thread || (c->is_stopping && ! c->multi);
    if (! is_over) {
        t->wishes |= what;
        if (! t->is_queued) {
            atomic_fetch_add (&t->refs, 1);
            t->is_queued = true;
            t->next_queued = NULL;
            *c->queue_end = t;
            c->queue_end = &t->next_queued;
        }
        wake (c);
    }
    pthread_mutex_unlock (&c->lock);
    if (what == WISH_START && is_over) {
        http_deliver_end (t, HTTP_INTERNAL, "no thread for requests");
        http_transfer_unref (t);
    }
}

/* The lines move into nodes libcurl reads and never changes. */
static struct curl_slist *
take_lines (struct strv *lines)
{
    struct curl_slist *first = NULL, **end = &first;
    for (size_t i = 0; i < lines->len; i++) {
        struct curl_slist *node = x_new0 (struct curl_slist);
        node->data = steal_ptr (&lines->items[i]);
        *end = node;
        end = &node->next;
    }
    free (lines->items);
    *lines = (struct strv){ 0 };
    return first;
}

struct http_transfer *
http_start (struct http_client *c, const struct http_request *request,
            const struct http_events *events, void *ctx)
{
    struct http_transfer *t = x_new0 (struct http_transfer);
    atomic_init (&t->refs, 2); /* the caller's and the thread's */
    atomic_fetch_add (&c->refs, 1);
    t->client = c;
    t->events = *events;
    t->ctx = ctx;
    t->asked.method = x_strdup (request->method);
    t->asked.to.url = x_strdup (request->url);
    t->asked.to.socket_path = request->socket_path ? x_strdup (request->socket_path) : NULL;
    t->asked.body_kind = request->body_kind;
    t->asked.body_len = request->body_len;
    t->asked.is_public_only = request->is_public_only;
    t->asked.connect_timeout_ms =
        request->connect_timeout_ms ? request->connect_timeout_ms : DEFAULT_CONNECT_TIMEOUT_MS;
    t->asked.first_byte_timeout_ms = request->first_byte_timeout_ms;
    t->asked.between_bytes_timeout_ms = request->between_bytes_timeout_ms;
    struct strv lines = { 0 };
    http_header_lines (request, &lines);
    t->asked.headers = take_lines (&lines);
    if (request->body_kind == HTTP_BODY_BUFFER) {
        buf_append (&t->out.bytes, request->body, request->body_len);
        t->out.is_done = true;
    }
    _cleanup_url_ struct url url = { 0 };
    if (! url_parse (request->url, &url)) {
        t->asked.host = x_strdup (url.authority.host);
        if (request->uses_proxy_env)
            t->asked.to.proxy = http_find_proxy (&url);
        /* A proxy looks names up itself; a loopback name needs no lookup; a root dot is libcurl's.
         */
        const char *host = url.authority.host;
        bool is_ours = ! t->asked.to.proxy && ! host_is_literal (host) &&
                       ! host_is_loopback (host) && host[strlen (host) - 1] != '.';
        t->asked.name = is_ours ? x_strdup (host) : NULL;
        t->asked.port =
            url.authority.port == URL_NO_PORT ? url_default_port (url.scheme) : url.authority.port;
    }
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init (&recursive);
    pthread_mutexattr_settype (&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init (&t->lock, &recursive);
    pthread_mutexattr_destroy (&recursive);
    pthread_mutex_init (&t->out.lock, NULL);
    wish (t, WISH_START);
    return t;
}

bool
http_transfer_send (struct http_transfer *t, const void *data, size_t len)
{
    pthread_mutex_lock (&t->out.lock);
    bool is_full = t->out.bytes.len - t->out.at >= BODY_BACKLOG_BYTES;
    bool wakes = false;
    if (is_full)
        t->out.was_full = true;
    else {
        if (t->out.at > BODY_BACKLOG_BYTES) { /* forget what was sent */
            memmove (t->out.bytes.data, t->out.bytes.data + t->out.at,
                     t->out.bytes.len - t->out.at);
            buf_truncate (&t->out.bytes, t->out.bytes.len - t->out.at);
            t->out.at = 0;
        }
        buf_append (&t->out.bytes, data, len);
        wakes = t->out.is_waiting;
        t->out.is_waiting = false;
    }
    pthread_mutex_unlock (&t->out.lock);
    if (wakes)
        wish (t, WISH_RESUME);
    return ! is_full;
}

void
http_transfer_send_end (struct http_transfer *t, bool is_complete)
{
    pthread_mutex_lock (&t->out.lock);
    t->out.is_done = true;
    t->out.is_broken = ! is_complete;
    t->out.is_waiting = false;
    pthread_mutex_unlock (&t->out.lock);
    wish (t, WISH_RESUME);
}

void
http_transfer_resume (struct http_transfer *t)
{
    wish (t, WISH_RESUME);
}

void
http_transfer_release (struct http_transfer *t)
{
    if (! t)
        return;
    pthread_mutex_lock (&t->lock);
    t->is_released = true;
    pthread_mutex_unlock (&t->lock);
    wish (t, WISH_RELEASE);
    http_transfer_unref (t);
}
