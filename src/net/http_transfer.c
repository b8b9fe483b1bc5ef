/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_transfer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/own_names.h"
#include "net/url.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* --- references --- */

void
http_client_unref (struct http_client *c)
{
    if (atomic_fetch_sub (&c->refs, 1) != 1)
        return;
    pthread_cond_destroy (&c->woken);
    pthread_mutex_destroy (&c->lock);
    free (c->ca_pem);
    free (c->cert_pem);
    if (c->key_pem)
        explicit_bzero (c->key_pem, strlen (c->key_pem));
    free (c->key_pem);
    free (c);
}

static void
free_headers (struct curl_slist *list)
{
    while (list) {
        struct curl_slist *next = list->next;
        explicit_bzero (list->data, strlen (list->data)); /* one of them may be a key */
        free (list->data);
        free (list);
        list = next;
    }
}

void
http_transfer_unref (struct http_transfer *t)
{
    if (atomic_fetch_sub (&t->refs, 1) != 1)
        return;
    http_client_unref (t->client);
    free (t->asked.method);
    free (t->asked.to.url);
    free (t->asked.to.proxy);
    free (t->asked.to.socket_path);
    free (t->asked.host);
    free (t->asked.name);
    free_headers (t->asked.headers);
    free_headers (t->own.addresses);
    buf_free (&t->out.bytes);
    buf_free (&t->own.head);
    pthread_mutex_destroy (&t->out.lock);
    pthread_mutex_destroy (&t->lock);
    free (t);
}

/* --- what its owner is told --- */

static bool
http_deliver_body (struct http_transfer *t, const void *data, size_t len)
{
    pthread_mutex_lock (&t->lock);
    bool taken = t->is_released || t->events.body (t->ctx, data, len);
    pthread_mutex_unlock (&t->lock);
    return taken;
}

void
http_deliver_end (struct http_transfer *t, enum http_failure failure, const char *detail)
{
    pthread_mutex_lock (&t->lock);
    if (! t->is_released)
        t->events.end (t->ctx, failure, detail);
    pthread_mutex_unlock (&t->lock);
}

static void
http_deliver_ready (struct http_transfer *t)
{
    pthread_mutex_lock (&t->lock);
    if (! t->is_released && t->events.ready)
        t->events.ready (t->ctx);
    pthread_mutex_unlock (&t->lock);
}

/* The head is kept as text pairs in one buffer; pointers are made only now that it no longer grows.
 */
static void
http_deliver_head (struct http_transfer *t)
{
    _cleanup_free_ struct http_header *headers =
        x_new_array (struct http_header, t->own.header_count + 1);
    const char *at = t->own.head.data;
    for (size_t i = 0; i < t->own.header_count; i++) {
        headers[i].name = at;
        at += strlen (at) + 1;
        headers[i].value = at;
        headers[i].value_len = strlen (at);
        at += headers[i].value_len + 1;
    }
    pthread_mutex_lock (&t->lock);
    if (! t->is_released && t->events.head)
        t->events.head (t->ctx, t->own.status, headers, t->own.header_count);
    pthread_mutex_unlock (&t->lock);
}

/* --- what libcurl asks us --- */

void
http_transfer_set_deadline (struct http_transfer *t, uint64_t ms)
{
    t->own.deadline_ms = ms ? clock_monotonic_ms () + ms : 0;
}

/* libcurl would repeat on a fresh connection what died on a pooled one; a body that left is not
 * ours to repeat. */
static bool
is_repeat_of_a_sent_body (struct http_transfer *t)
{
    t->own.is_cut = t->own.is_cut || (t->own.is_sent && t->own.out_total > 0);
    return t->own.is_cut;
}

static curl_socket_t
on_open_socket (void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)purpose;
    struct http_transfer *t = ctx;
    /* A proxy is the operator's own choice; a literal was allowed as what it is. */
    if (! t->asked.to.proxy && t->asked.host &&
        (address_needs_a_literal (&to->addr, t->asked.host) ||
         (t->asked.is_public_only && address_is_private (&to->addr)))) {
        t->own.is_denied = true;
        return CURL_SOCKET_BAD;
    }
    if (is_repeat_of_a_sent_body (t))
        return CURL_SOCKET_BAD;
    return socket (to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* A connection is there, new or pooled, and the request goes out next. */
static int
on_request (void *ctx, char *to_ip, char *from_ip, int to_port, int from_port)
{
    (void)to_ip, (void)from_ip, (void)to_port, (void)from_port;
    struct http_transfer *t = ctx;
    if (is_repeat_of_a_sent_body (t))
        return CURL_PREREQFUNC_ABORT;
    t->own.is_sent = true;
    http_transfer_set_deadline (t, t->asked.first_byte_timeout_ms);
    return CURL_PREREQFUNC_OK;
}

static size_t
on_read (char *to, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t room = size * count;
    pthread_mutex_lock (&t->out.lock);
    size_t len = t->out.bytes.len - t->out.at;
    size_t result;
    bool has_room = false;
    if (t->out.is_broken)
        result = CURL_READFUNC_ABORT;
    else if (len == 0 && t->out.is_done)
        /* Less than was announced: the server would wait for ever. */
        result = t->asked.body_len != HTTP_UNKNOWN_LENGTH && t->own.out_total < t->asked.body_len
                     ? CURL_READFUNC_ABORT
                     : 0;
    else if (len == 0) {
        t->out.is_waiting = true;
        result = CURL_READFUNC_PAUSE;
    } else {
        result = len < room ? len : room;
        memcpy (to, t->out.bytes.data + t->out.at, result);
        t->out.at += result;
        t->own.out_total += result;
        if (t->out.at == t->out.bytes.len) {
            buf_truncate (&t->out.bytes, 0);
            t->out.at = 0;
        }
        has_room = t->out.was_full && t->out.bytes.len - t->out.at < BODY_BACKLOG_BYTES / 2;
        if (has_room)
            t->out.was_full = false;
    }
    pthread_mutex_unlock (&t->out.lock);
    if (has_room)
        http_deliver_ready (t);
    return result;
}

static int
on_seek (void *ctx, curl_off_t offset, int origin)
{
    (void)origin;
    const struct http_transfer *t = ctx;
    return offset == 0 && t->own.out_total == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void
add_head_line (struct http_transfer *t, const char *line, size_t len)
{
    const char *colon = memchr (line, ':', len);
    if (! colon || colon == line || memchr (line, '\0', len))
        return;
    char *name = buf_reserve (&t->own.head, len + 2);
    size_t name_len = (size_t)(colon - line);
    memcpy (name, line, name_len);
    name[name_len] = '\0';
    str_lower (name);
    const char *value = colon + 1, *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t value_len = (size_t)(end - value);
    memcpy (name + name_len + 1, value, value_len);
    name[name_len + 1 + value_len] = '\0';
    t->own.head.len += name_len + value_len + 2;
    t->own.header_count++;
}

static size_t
on_header (char *line, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t whole = size * count, len = whole;
    if (t->own.has_head)
        return whole; /* trailers */
    if (t->own.head.len + whole > HEAD_LIMIT_BYTES) {
        t->own.is_head_large = true;
        return 0;
    }
    while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
        len--;
    if (len >= 5 && strncmp (line, "HTTP/", 5) == 0) {
        const char *blank = memchr (line, ' ', len);
        t->own.status = blank ? atoi (blank + 1) : 0;
        t->own.head.len = 0;
        t->own.header_count = 0;
    } else if (len)
        add_head_line (t, line, len);
    else if (t->own.status >= 200 || t->own.status == 101) {
        t->own.has_head = true;
        http_transfer_set_deadline (t, t->asked.between_bytes_timeout_ms);
        http_deliver_head (t);
    }
    return whole;
}

static size_t
on_body (char *data, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    if (! http_deliver_body (t, data, size * count)) {
        t->own.is_paused = true;
        t->own.deadline_ms = 0;
        return CURL_WRITEFUNC_PAUSE;
    }
    http_transfer_set_deadline (t, t->asked.between_bytes_timeout_ms);
    return size * count;
}

void
http_transfer_hook (const struct curl_api *api, struct http_transfer *t)
{
    CURL *easy = t->own.easy;
    api->easy_setopt (easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    api->easy_setopt (easy, CURLOPT_OPENSOCKETDATA, t);
    api->easy_setopt (easy, CURLOPT_PREREQFUNCTION, on_request);
    api->easy_setopt (easy, CURLOPT_PREREQDATA, t);
    api->easy_setopt (easy, CURLOPT_HEADERFUNCTION, on_header);
    api->easy_setopt (easy, CURLOPT_HEADERDATA, t);
    api->easy_setopt (easy, CURLOPT_WRITEFUNCTION, on_body);
    api->easy_setopt (easy, CURLOPT_WRITEDATA, t);
    if (t->asked.body_kind == HTTP_BODY_NONE)
        return;
    api->easy_setopt (easy, CURLOPT_READFUNCTION, on_read);
    api->easy_setopt (easy, CURLOPT_READDATA, t);
    api->easy_setopt (easy, CURLOPT_SEEKFUNCTION, on_seek);
    api->easy_setopt (easy, CURLOPT_SEEKDATA, t);
}
