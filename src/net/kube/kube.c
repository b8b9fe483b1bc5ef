/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/kube.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "net/kube/kube_internal.h"
#include "net/retry_after.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define CALL_TIMEOUT_MS    30000
#define PATIENCE_MS        10000 /* for being told to come back */
#define ANSWER_LIMIT_BYTES ((size_t)64 << 20)
#define TOKEN_BYTES        ((size_t)64 << 10)
#define QUOTED_BYTES       300

struct kube *
kube_new (const char *kubeconfig, struct mur_error **err)
{
    struct kube_access access;
    if (! kube_access_read (kubeconfig, &access, err))
        return NULL;
    struct kube *k = x_new0 (struct kube);
    *k = (struct kube){ access, http_client_new () };
    http_client_trust (k->http, access.ca, access.cert, access.key);
    return k;
}

void
kube_free (struct kube *k)
{
    if (! k)
        return;
    http_client_free (k->http);
    kube_access_clear (&k->access);
    free (k);
}

const char *
kube_namespace (const struct kube *k)
{
    return k->access.namespace;
}

void
kube_answer_clear (struct kube_answer *a)
{
    json_decref (a->body);
    *a = (struct kube_answer){ 0 };
}

char *
kube_escape (const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    struct buf b = { 0 };
    for (; *text; text++)
        if (strchr (plain, *text))
            buf_putc (&b, *text);
        else
            buf_printf (&b, "%%%02X", (unsigned char)*text);
    return buf_steal (&b);
}

char *
kube_url (const struct kube *k, const char *path)
{
    return x_asprintf ("%s%s", k->access.server, path);
}

char *
kube_bearer (const struct kube *k)
{
    if (k->access.token)
        return x_asprintf ("Bearer %s", k->access.token);
    if (! k->access.token_file)
        return NULL;
    _cleanup_close_ int fd = open (k->access.token_file, O_RDONLY | O_CLOEXEC);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || ! fd_read_all (fd, TOKEN_BYTES, &text) || ! text.len)
        return NULL;
    return x_asprintf ("Bearer %.*s", (int)strcspn (text.data, "\r\n"), text.data);
}

static bool
read_answer (const struct kube *k, int status, const char *text, size_t len,
             struct kube_answer *out, struct mur_error **err)
{
    *out = (struct kube_answer){ .status = status, .reason = "", .message = "" };
    out->body = json_loadb (text ? text : "", len, 0, NULL);
    if (! json_is_object (out->body)) {
        kube_answer_clear (out);
        return mur_fail (err, E_KUB_002, "%s answered %d and no object: %.*s", k->access.server,
                         status, (int)utf8_cut (text ? text : "", len, QUOTED_BYTES),
                         text ? text : "");
    }
    if (kube_answer_is_ok (out))
        return true;
    const char *reason = json_get_string (out->body, "reason");
    const char *message = json_get_string (out->body, "message");
    out->reason = reason ? reason : "";
    out->message = message ? message : "";
    return true;
}

static uint64_t
retry_after_of (const struct http_response *r)
{
    uint64_t ms = 0;
    const char *text = http_response_header (r, "retry-after");
    return text && retry_after_read (text, clock_unix_ms (), &ms) ? ms : 0;
}

static bool
call_once (struct kube *k, const struct kube_call *call, const char *text, struct kube_answer *out,
           struct mur_error **err)
{
    _cleanup_free_ char *url = kube_url (k, call->path);
    _cleanup_free_ char *bearer = kube_bearer (k);
    const char *type = call->content_type ? call->content_type : "application/json";
    struct http_header headers[3] = { { "accept", "application/json",
                                        strlen ("application/json") } };
    size_t count = 1;
    if (bearer)
        headers[count++] = (struct http_header){ "authorization", bearer, strlen (bearer) };
    if (text)
        headers[count++] = (struct http_header){ "content-type", type, strlen (type) };
    uint64_t timeout_ms = call->timeout_ms ? call->timeout_ms : CALL_TIMEOUT_MS;
    const struct http_fetch fetch = { .request = { .method = call->method,
                                                   .url = url,
                                                   .headers = headers,
                                                   .header_count = count,
                                                   .body_kind =
                                                       text ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
                                                   .body = text,
                                                   .body_len = text ? strlen (text) : 0,
                                                   .connect_timeout_ms = timeout_ms },
                                      .limit_bytes = ANSWER_LIMIT_BYTES,
                                      .total_timeout_ms = timeout_ms,
                                      .cancel = call->cancel };
    struct http_response response = { 0 };
    struct mur_error *fault = NULL;
    bool is_heard = http_fetch (k->http, &fetch, &response, NULL, &fault);
    if (is_heard) {
        is_heard =
            read_answer (k, response.status, response.body.data, response.body.len, out, err);
        out->retry_after_ms = retry_after_of (&response);
    } else {
        mur_fail (err, E_KUB_002, "%s: %s", k->access.server, fault->message);
        mur_error_free (fault);
    }
    http_response_free (&response);
    if (bearer)
        explicit_bzero (bearer, strlen (bearer));
    return is_heard;
}

/* False when it was cancelled meanwhile. */
static bool
wait_ms_or_cancel (struct cancel *cancel, uint64_t ms)
{
    if (cancel)
        return cancel_sleep (cancel, ms);
    const struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep (&time, NULL);
    return true;
}

bool
kube_call (struct kube *k, const struct kube_call *call, struct kube_answer *out,
           struct mur_error **err)
{
    _cleanup_free_ char *text = call->body ? json_text (call->body, JSON_TEXT_ORDERED) : NULL;
    uint64_t end_ms = clock_monotonic_ms () + PATIENCE_MS;
    *out = (struct kube_answer){ 0 };
    for (;;) {
        if (! call_once (k, call, text, out, err))
            return false;
        uint64_t wait_ms = out->retry_after_ms ? out->retry_after_ms : 1000;
        if (out->status != 429 || clock_monotonic_ms () + wait_ms > end_ms ||
            ! wait_ms_or_cancel (call->cancel, wait_ms))
            return true;
        kube_answer_clear (out);
    }
}
