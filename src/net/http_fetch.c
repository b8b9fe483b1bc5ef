/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_fetch.h"

#include "base/alloc.h"
#include "base/condition.h"
#include "net/url.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

struct call {
    const struct http_fetch *fetch;
    struct http_response *out;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over, is_cancelled, is_too_large, is_sink_stopped;
    enum http_failure failure;
    char *detail;
};

const char *
http_response_header (const struct http_response *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcmp (r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

char *
http_response_joined (const struct http_response *r, const char *name)
{
    struct buf all = { 0 };
    for (size_t i = 0; i < r->header_count; i++)
        if (strcmp (r->headers[i].name, name) == 0)
            buf_printf (&all, "%s%s", all.len ? ", " : "", r->headers[i].value);
    return all.len ? buf_steal (&all) : NULL;
}

void
http_response_free (struct http_response *r)
{
    for (size_t i = 0; i < r->header_count; i++) {
        free ((char *)r->headers[i].name);
        free ((char *)r->headers[i].value);
    }
    free (r->headers);
    buf_free (&r->body);
    *r = (struct http_response){ 0 };
}

static void
call_over (struct call *call, enum http_failure failure, const char *detail)
{
    pthread_mutex_lock (&call->lock);
    if (! call->is_over) {
        call->is_over = true;
        call->failure = failure;
        call->detail = x_strdup (detail);
        pthread_cond_signal (&call->changed);
    }
    pthread_mutex_unlock (&call->lock);
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    struct call *call = ctx;
    call->out->status = status;
    call->out->headers = x_new_array (struct http_header, header_count + 1);
    call->out->header_count = header_count;
    for (size_t i = 0; i < header_count; i++)
        call->out->headers[i] = (struct http_header){
            .name = x_strdup (headers[i].name),
            .value = x_strndup (headers[i].value, headers[i].value_len),
            .value_len = headers[i].value_len,
        };
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct call *call = ctx;
    if (call->is_over)
        return true;
    if (call->fetch->sink && call->out->status / 100 == 2) {
        if (! call->fetch->sink (call->fetch->sink_ctx, data, len)) {
            call->is_sink_stopped = true;
            call_over (call, HTTP_INTERNAL, "the receiver stopped");
        }
        return true;
    }
    if (call->out->body.len + len > call->fetch->limit_bytes) {
        call->is_too_large = true;
        call_over (call, HTTP_INTERNAL, "the answer is too large");
        return true;
    }
    buf_append (&call->out->body, data, len);
    return true;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    call_over (ctx, failure, detail);
}

static void
on_cancel (void *ctx)
{
    struct call *call = ctx;
    pthread_mutex_lock (&call->lock);
    call->is_cancelled = true;
    pthread_cond_signal (&call->changed);
    pthread_mutex_unlock (&call->lock);
}

/* True when it ended by itself; false when cancelled or out of time. */
static bool
wait_for_end (struct call *call, uint64_t timeout_ms)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int status = 0;
    pthread_mutex_lock (&call->lock);
    while (! call->is_over && ! call->is_cancelled && status != ETIMEDOUT)
        status = timeout_ms ? pthread_cond_timedwait (&call->changed, &call->lock, &until)
                            : pthread_cond_wait (&call->changed, &call->lock);
    bool ended = call->is_over;
    pthread_mutex_unlock (&call->lock);
    return ended;
}

static void
call_init (struct call *call, const struct http_fetch *fetch, struct http_response *out)
{
    *call = (struct call){ .fetch = fetch, .out = out };
    pthread_mutex_init (&call->lock, NULL);
    condition_init (&call->changed);
}

static void
call_clear (struct call *call)
{
    pthread_cond_destroy (&call->changed);
    pthread_mutex_destroy (&call->lock);
    free (call->detail);
}

static bool
report (struct mur_error **err, const char *url, const char *why)
{
    _cleanup_url_ struct url parts = { 0 };
    if (url_parse (url, &parts))
        return mur_fail (err, E_IO_003, "request to the server failed: %s", why);
    _cleanup_free_ char *port =
        parts.authority.port == URL_NO_PORT ? NULL : x_asprintf (":%d", parts.authority.port);
    return mur_fail (err, E_IO_003, "request to %s%s failed: %s", parts.authority.host,
                     port ? port : "", why);
}

static bool
fetch_once (struct http_client *c, const struct http_fetch *fetch,
            const struct http_request *request, struct http_response *out,
            enum http_failure *failure, struct mur_error **err)
{
    static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };
    struct call call;
    call_init (&call, fetch, out);
    struct http_transfer *t = http_start (c, request, &events, &call);
    uint64_t listener = cancel_add (fetch->cancel, on_cancel, &call);
    bool ended = wait_for_end (&call, fetch->total_timeout_ms);
    cancel_remove (fetch->cancel, listener);
    http_transfer_release (t); /* no callback after this */

    bool is_ok = ended && call.failure == HTTP_OK;
    if (is_ok)
        *failure = HTTP_OK;
    else if (! ended) {
        *failure = HTTP_RESPONSE_TIMEOUT;
        report (err, request->url, call.is_cancelled ? "cancelled" : "it took too long");
    } else {
        *failure = call.failure;
        bool is_ours = call.is_too_large || call.is_sink_stopped;
        const char *text = http_failure_text (call.failure);
        report (err, request->url,
                is_ours || call.failure == HTTP_INTERNAL || call.failure == HTTP_TLS_FAILED
                    ? call.detail
                    : text);
    }
    call_clear (&call);
    return is_ok;
}

/* --- redirects, for our own downloads only --- */

static bool
is_redirect (const struct http_response *r)
{
    return (r->status == 301 || r->status == 302 || r->status == 303 || r->status == 307 ||
            r->status == 308) &&
           http_response_header (r, "location");
}

/* A secure address never leads to an insecure one, and a credential never leaves its origin. */
static bool
follow (struct http_request *request, char **url, struct http_header *headers,
        const struct http_response *r, struct mur_error **err)
{
    char *next = url_resolve (*url, http_response_header (r, "location"));
    if (! next || ! url_keeps_secure (*url, next)) {
        free (next);
        return report (err, *url, "it redirects to an address that is not followed");
    }
    if (! url_same_origin (*url, next)) {
        size_t kept = 0;
        for (size_t i = 0; i < request->header_count; i++)
            if (strcasecmp (headers[i].name, "authorization") != 0 &&
                strcasecmp (headers[i].name, "cookie") != 0)
                headers[kept++] = headers[i];
        request->header_count = kept;
    }
    free (*url);
    *url = next;
    request->url = next;
    return true;
}

bool
http_fetch (struct http_client *c, const struct http_fetch *fetch, struct http_response *out,
            enum http_failure *failure, struct mur_error **err)
{
    enum http_failure unused;
    if (! failure)
        failure = &unused;
    *out = (struct http_response){ 0 };
    struct http_request request = fetch->request;
    _cleanup_free_ char *url = x_strdup (request.url);
    _cleanup_free_ struct http_header *headers =
        x_new_array (struct http_header, request.header_count + 1);
    if (request.header_count)
        memcpy (headers, request.headers, request.header_count * sizeof *headers);
    request.headers = headers;
    bool may_follow = strcmp (request.method, "GET") == 0;
    for (unsigned hops = 0;; hops++) {
        if (! fetch_once (c, fetch, &request, out, failure, err)) {
            http_response_free (out);
            return false;
        }
        out->is_elsewhere = ! url_same_origin (url, fetch->request.url);
        if (! may_follow || fetch->redirect_limit == 0 || ! is_redirect (out))
            return true;
        bool goes_on = hops < fetch->redirect_limit ? follow (&request, &url, headers, out, err)
                                                    : report (err, url, "it redirects too often");
        http_response_free (out);
        if (! goes_on) {
            *failure = HTTP_INTERNAL;
            return false;
        }
    }
}
