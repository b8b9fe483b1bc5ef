/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client: transfers of one libcurl multi handle on one thread. See http_client.h.
 *
 * Other threads only leave wishes (start, resume, release) in the client's queue and wake the
 * thread; libcurl itself is touched by that thread alone. Locks: client->lock is a leaf;
 * transfer->lock is held around callbacks, so that a release waits for a callback under way;
 * transfer->out_lock guards the request body and is a leaf.
 */
#include "net/http_client.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/curl_api.h"
#include "net/http_names.h"
#include "net/http_prepare.h"
#include "net/url.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define DEFAULT_CONNECT_TIMEOUT_MS 30000
#define BODY_BACKLOG_BYTES         ((size_t)256 << 10)
#define POOLED_CONNECTIONS         32L
#define IDLE_POLL_MS               600000

enum wish {
    WISH_START = 1,
    WISH_RESUME = 2,
    WISH_RELEASE = 4,
};

struct http_transfer {
    atomic_uint refs; /* the caller's, the thread's while active, the queue's while wishes wait */
    struct http_client *client;
    struct http_events events;
    void *ctx;

    /* What was asked; never changes after http_start. */
    char *method;
    char *url;
    char *proxy; /* NULL: straight */
    struct curl_slist *headers;
    enum http_body body_kind;
    size_t body_len;
    uint64_t connect_timeout_ms, first_byte_timeout_ms, between_bytes_timeout_ms;
    bool is_host_literal;
    char *name; /* host to be looked up by us; NULL: libcurl needs no lookup, or does its own */
    int port;

    pthread_mutex_t lock; /* recursive: a callback may release its own transfer */
    bool is_released;

    pthread_mutex_t out_lock;
    struct buf out;
    size_t out_at;
    bool is_out_done, is_out_broken, is_out_waiting, was_out_full;

    /* The client's queue, under client->lock. */
    unsigned wishes;
    bool is_queued;
    struct http_transfer *next_queued;

    /* The thread's own. */
    CURL *easy;
    struct curl_slist *addresses; /* of the name, as libcurl takes them */
    bool is_resolving, is_abandoned;
    bool is_active;
    struct http_transfer *next, **link;
    uint64_t deadline_ms;
    bool is_sent, is_cut, is_denied, has_head, is_paused;
    size_t out_total;
    int status;
    struct buf head; /* name\0value\0... of the head being read */
    size_t header_count;
    char error[CURL_ERROR_SIZE];
};

struct http_client {
    atomic_uint refs; /* the owner's and each transfer's */
    pthread_mutex_t lock;
    pthread_cond_t woken; /* for the thread when there is no libcurl to poll with */
    pthread_t thread;
    bool has_thread, is_stopping;
    struct http_transfer *queue, **queue_end;
    CURLM *multi; /* set once by the thread */
    const struct curl_api *api;
    const char *load_fault;
    /* The thread's own. */
    struct http_names *names; /* NULL until a name is needed */
    bool is_ending;
    struct http_transfer *active;
};

static const struct {
    const char *text;
    bool is_transient;
} failures[] = {
    [HTTP_OK] = { "no failure", false },
    [HTTP_DENIED] = { "the name resolves to a link-local or metadata address", false },
    [HTTP_DNS_FAILED] = { "the name does not resolve", false },
    [HTTP_REFUSED] = { "connection refused", false },
    [HTTP_RESET] = { "connection closed before an answer", true },
    [HTTP_CONNECT_TIMEOUT] = { "connecting timed out", true },
    [HTTP_TLS_FAILED] = { "TLS failed", false },
    [HTTP_INCOMPLETE] = { "the answer ended early", true },
    [HTTP_RESPONSE_TIMEOUT] = { "the answer timed out", true },
    [HTTP_INTERNAL] = { "the request could not be made", false },
};

const char *
http_failure_text (enum http_failure failure)
{
    return failures[failure].text;
}

bool
http_failure_is_transient (enum http_failure failure)
{
    return failures[failure].is_transient;
}

/* --- references --- */

static void
client_unref (struct http_client *c)
{
    if (atomic_fetch_sub (&c->refs, 1) != 1)
        return;
    pthread_cond_destroy (&c->woken);
    pthread_mutex_destroy (&c->lock);
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

static void
transfer_unref (struct http_transfer *t)
{
    if (atomic_fetch_sub (&t->refs, 1) != 1)
        return;
    client_unref (t->client);
    free (t->method);
    free (t->url);
    free (t->proxy);
    free (t->name);
    free_headers (t->headers);
    free_headers (t->addresses);
    buf_free (&t->out);
    buf_free (&t->head);
    pthread_mutex_destroy (&t->out_lock);
    pthread_mutex_destroy (&t->lock);
    free (t);
}

/* --- wishes --- */

static void wish (struct http_transfer *t, enum wish what);

static bool
deliver_body (struct http_transfer *t, const void *data, size_t len)
{
    pthread_mutex_lock (&t->lock);
    bool taken = t->is_released || t->events.body (t->ctx, data, len);
    pthread_mutex_unlock (&t->lock);
    return taken;
}

static void
deliver_end (struct http_transfer *t, enum http_failure failure, const char *detail)
{
    pthread_mutex_lock (&t->lock);
    if (! t->is_released)
        t->events.end (t->ctx, failure, detail);
    pthread_mutex_unlock (&t->lock);
}

static void
deliver_ready (struct http_transfer *t)
{
    pthread_mutex_lock (&t->lock);
    if (! t->is_released && t->events.ready)
        t->events.ready (t->ctx);
    pthread_mutex_unlock (&t->lock);
}

/* The head is kept as text pairs in one buffer; pointers are made only now that it no longer grows.
 */
static void
deliver_head (struct http_transfer *t)
{
    _cleanup_free_ struct http_header *headers =
        x_new_array (struct http_header, t->header_count + 1);
    const char *at = t->head.data;
    for (size_t i = 0; i < t->header_count; i++) {
        headers[i].name = at;
        at += strlen (at) + 1;
        headers[i].value = at;
        headers[i].value_len = strlen (at);
        at += headers[i].value_len + 1;
    }
    pthread_mutex_lock (&t->lock);
    if (! t->is_released)
        t->events.head (t->ctx, t->status, headers, t->header_count);
    pthread_mutex_unlock (&t->lock);
}

/* --- what libcurl asks us --- */

static void
set_deadline (struct http_transfer *t, uint64_t ms)
{
    t->deadline_ms = ms ? clock_monotonic_ms () + ms : 0;
}

/* libcurl would repeat on a fresh connection what died on a pooled one; a body that left is not
 * ours to repeat. */
static bool
is_repeat_of_a_sent_body (struct http_transfer *t)
{
    t->is_cut = t->is_cut || (t->is_sent && t->out_total > 0);
    return t->is_cut;
}

static curl_socket_t
on_open_socket (void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)purpose;
    struct http_transfer *t = ctx;
    /* A proxy is the operator's own choice; a literal was allowed as what it is. */
    if (! t->proxy && ! t->is_host_literal && address_is_local_service (&to->addr)) {
        t->is_denied = true;
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
    t->is_sent = true;
    set_deadline (t, t->first_byte_timeout_ms);
    return CURL_PREREQFUNC_OK;
}

static size_t
on_read (char *to, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t room = size * count;
    pthread_mutex_lock (&t->out_lock);
    size_t len = t->out.len - t->out_at;
    size_t result;
    bool has_room = false;
    if (t->is_out_broken)
        result = CURL_READFUNC_ABORT;
    else if (len == 0 && t->is_out_done)
        /* Less than was announced: the server would wait for ever. */
        result = t->body_len != HTTP_UNKNOWN_LENGTH && t->out_total < t->body_len
                     ? CURL_READFUNC_ABORT
                     : 0;
    else if (len == 0) {
        t->is_out_waiting = true;
        result = CURL_READFUNC_PAUSE;
    } else {
        result = len < room ? len : room;
        memcpy (to, t->out.data + t->out_at, result);
        t->out_at += result;
        t->out_total += result;
        if (t->out_at == t->out.len) {
            buf_truncate (&t->out, 0);
            t->out_at = 0;
        }
        has_room = t->was_out_full && t->out.len - t->out_at < BODY_BACKLOG_BYTES / 2;
        if (has_room)
            t->was_out_full = false;
    }
    pthread_mutex_unlock (&t->out_lock);
    if (has_room)
        deliver_ready (t);
    return result;
}

static int
on_seek (void *ctx, curl_off_t offset, int origin)
{
    (void)origin;
    const struct http_transfer *t = ctx;
    return offset == 0 && t->out_total == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void
add_head_line (struct http_transfer *t, const char *line, size_t len)
{
    const char *colon = memchr (line, ':', len);
    if (! colon || colon == line || memchr (line, '\0', len))
        return;
    char *name = buf_reserve (&t->head, len + 2);
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
    t->head.len += name_len + value_len + 2;
    t->header_count++;
}

static size_t
on_header (char *line, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    size_t whole = size * count, len = whole;
    if (t->has_head)
        return whole; /* trailers */
    while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
        len--;
    if (len >= 5 && strncmp (line, "HTTP/", 5) == 0) {
        const char *blank = memchr (line, ' ', len);
        t->status = blank ? atoi (blank + 1) : 0;
        t->head.len = 0;
        t->header_count = 0;
    } else if (len)
        add_head_line (t, line, len);
    else if (t->status >= 200 || t->status == 101) {
        t->has_head = true;
        set_deadline (t, t->between_bytes_timeout_ms);
        deliver_head (t);
    }
    return whole;
}

static size_t
on_body (char *data, size_t size, size_t count, void *ctx)
{
    struct http_transfer *t = ctx;
    if (! deliver_body (t, data, size * count)) {
        t->is_paused = true;
        t->deadline_ms = 0;
        return CURL_WRITEFUNC_PAUSE;
    }
    set_deadline (t, t->between_bytes_timeout_ms);
    return size * count;
}

/* --- the thread --- */

static void
set_body_options (struct http_client *c, struct http_transfer *t)
{
    const struct curl_api *api = c->api;
    bool is_head = strcmp (t->method, "HEAD") == 0;
    if (t->body_kind == HTTP_BODY_NONE) {
        api->easy_setopt (t->easy, is_head ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1L);
        bool repeats_safely =
            is_head || strcmp (t->method, "GET") == 0 || strcmp (t->method, "OPTIONS") == 0;
        if (! repeats_safely) /* libcurl repeats what died on a pooled connection */
            api->easy_setopt (t->easy, CURLOPT_FRESH_CONNECT, 1L);
    } else {
        api->easy_setopt (t->easy, CURLOPT_UPLOAD, 1L);
        api->easy_setopt (t->easy, CURLOPT_READFUNCTION, on_read);
        api->easy_setopt (t->easy, CURLOPT_READDATA, t);
        api->easy_setopt (t->easy, CURLOPT_SEEKFUNCTION, on_seek);
        api->easy_setopt (t->easy, CURLOPT_SEEKDATA, t);
        curl_off_t size = t->body_len == HTTP_UNKNOWN_LENGTH ? -1 : (curl_off_t)t->body_len;
        api->easy_setopt (t->easy, CURLOPT_INFILESIZE_LARGE, size);
    }
    if (! is_head || t->body_kind != HTTP_BODY_NONE)
        api->easy_setopt (t->easy, CURLOPT_CUSTOMREQUEST, t->method);
}

static void
set_options (struct http_client *c, struct http_transfer *t)
{
    const struct curl_api *api = c->api;
    CURL *easy = t->easy;
    api->easy_setopt (easy, CURLOPT_PRIVATE, t);
    api->easy_setopt (easy, CURLOPT_ERRORBUFFER, t->error);
    api->easy_setopt (easy, CURLOPT_NOSIGNAL, 1L);
    api->easy_setopt (easy, CURLOPT_QUICK_EXIT, 1L); /* never wait for a name lookup we gave up */
    api->easy_setopt (easy, CURLOPT_URL, t->url);
    api->easy_setopt (easy, CURLOPT_PATH_AS_IS, 1L);
    api->easy_setopt (easy, CURLOPT_PROTOCOLS_STR, "http,https");
    api->easy_setopt (easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    api->easy_setopt (easy, CURLOPT_FOLLOWLOCATION, 0L);
    api->easy_setopt (easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    api->easy_setopt (easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    api->easy_setopt (easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    api->easy_setopt (easy, CURLOPT_HTTPHEADER, t->headers);
    api->easy_setopt (easy, CURLOPT_PROXY, t->proxy ? t->proxy : "");
    if (t->addresses)
        api->easy_setopt (easy, CURLOPT_RESOLVE, t->addresses);
    api->easy_setopt (easy, CURLOPT_CONNECTTIMEOUT_MS, (long)t->connect_timeout_ms);
    api->easy_setopt (easy, CURLOPT_TCP_KEEPALIVE, 1L);
    api->easy_setopt (easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    api->easy_setopt (easy, CURLOPT_OPENSOCKETDATA, t);
    api->easy_setopt (easy, CURLOPT_PREREQFUNCTION, on_request);
    api->easy_setopt (easy, CURLOPT_PREREQDATA, t);
    api->easy_setopt (easy, CURLOPT_HEADERFUNCTION, on_header);
    api->easy_setopt (easy, CURLOPT_HEADERDATA, t);
    api->easy_setopt (easy, CURLOPT_WRITEFUNCTION, on_body);
    api->easy_setopt (easy, CURLOPT_WRITEDATA, t);
    const char *authorities = getenv ("SSL_CERT_FILE");
    if (authorities && *authorities)
        api->easy_setopt (easy, CURLOPT_CAINFO, authorities);
    set_body_options (c, t);
}

/* Takes a transfer off libcurl. The caller still holds the thread's reference. */
static void
detach (struct http_client *c, struct http_transfer *t)
{
    if (! t->is_active)
        return;
    t->is_active = false;
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    c->api->multi_remove_handle (c->multi, t->easy);
    c->api->easy_cleanup (t->easy);
    t->easy = NULL;
}

static void
finish (struct http_client *c, struct http_transfer *t, enum http_failure failure,
        const char *detail)
{
    detach (c, t);
    deliver_end (t, failure, detail);
    transfer_unref (t);
}

static void
perform (struct http_client *c, struct http_transfer *t)
{
    t->easy = c->api->easy_init ();
    set_options (c, t);
    if (c->api->multi_add_handle (c->multi, t->easy) != CURLM_OK) {
        c->api->easy_cleanup (t->easy);
        t->easy = NULL;
        finish (c, t, HTTP_INTERNAL, "libcurl refused the request");
        return;
    }
    t->is_active = true;
    t->next = c->active;
    t->link = &c->active;
    if (t->next)
        t->next->link = &t->next;
    c->active = t;
}

static void
on_name (void *ctx, const char *addresses, const char *fault)
{
    struct http_transfer *t = ctx;
    struct http_client *c = t->client;
    t->is_resolving = false;
    if (t->is_abandoned)
        transfer_unref (t);
    else if (c->is_ending)
        finish (c, t, HTTP_INTERNAL, "the session is ending");
    else if (! addresses)
        finish (c, t, HTTP_DNS_FAILED, fault);
    else {
        /* "+": libcurl lets go of it after its usual minute. */
        t->addresses = x_new0 (struct curl_slist);
        t->addresses->data = x_asprintf ("+%s:%d:%s", t->name, t->port, addresses);
        perform (c, t);
    }
}

static void
begin (struct http_client *c, struct http_transfer *t)
{
    if (! c->multi) {
        finish (c, t, HTTP_INTERNAL, c->load_fault);
        return;
    }
    if (t->name && ! c->names)
        c->names = http_names_new (NULL);
    if (! t->name || ! c->names) {
        perform (c, t);
        return;
    }
    t->is_resolving = true;
    http_names_find (c->names, t->name, on_name, t);
}

static void
grant (struct http_client *c, struct http_transfer *t, unsigned wishes)
{
    if ((wishes & WISH_START) && ! (wishes & WISH_RELEASE))
        begin (c, t);
    else if (wishes & WISH_START)
        transfer_unref (t); /* released before it began */
    else if ((wishes & WISH_RELEASE) && t->is_resolving)
        t->is_abandoned = true; /* the thread's reference goes with the lookup */
    else if ((wishes & WISH_RELEASE) && t->is_active) {
        detach (c, t);
        transfer_unref (t);
    } else if ((wishes & WISH_RESUME) && t->is_active) {
        if (t->is_paused)
            set_deadline (t, t->between_bytes_timeout_ms);
        t->is_paused = false;
        c->api->easy_pause (t->easy, CURLPAUSE_CONT);
    }
    transfer_unref (t); /* the queue's */
}

static enum http_failure
connect_failure (struct http_client *c, struct http_transfer *t)
{
    long reason = 0;
    c->api->easy_getinfo (t->easy, CURLINFO_OS_ERRNO, &reason);
    if (t->is_cut)
        return HTTP_RESET;
    if (t->is_denied)
        return HTTP_DENIED;
    return reason == ETIMEDOUT ? HTTP_CONNECT_TIMEOUT : HTTP_REFUSED;
}

static enum http_failure
classify (struct http_client *c, struct http_transfer *t, CURLcode code)
{
    enum http_failure cut = t->has_head ? HTTP_INCOMPLETE : HTTP_RESET;
    switch ((int)code) {
    case CURLE_OK:
        return HTTP_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return HTTP_DNS_FAILED;
    case CURLE_COULDNT_CONNECT:
        return connect_failure (c, t);
    case CURLE_OPERATION_TIMEDOUT:
        return t->is_sent ? HTTP_RESPONSE_TIMEOUT : HTTP_CONNECT_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return HTTP_TLS_FAILED;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_ABORTED_BY_CALLBACK:
        return cut;
    default:
        return HTTP_INTERNAL;
    }
}

static void
reap (struct http_client *c)
{
    int left;
    CURLMsg *message;
    while ((message = c->api->multi_info_read (c->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        struct http_transfer *t = NULL;
        c->api->easy_getinfo (message->easy_handle, CURLINFO_PRIVATE, &t);
        enum http_failure failure = classify (c, t, code);
        const char *detail = t->error[0] ? t->error : c->api->easy_strerror (code);
        finish (c, t, failure, failure == HTTP_DENIED ? http_failure_text (failure) : detail);
    }
}

/* Ends what waited too long; returns how long the thread may sleep for the rest. */
static int
expire (struct http_client *c)
{
    uint64_t now = clock_monotonic_ms (), wait_ms = IDLE_POLL_MS;
    for (struct http_transfer *t = c->active, *next; t; t = next) {
        next = t->next;
        if (! t->deadline_ms)
            continue;
        if (t->deadline_ms <= now)
            finish (c, t, HTTP_RESPONSE_TIMEOUT, http_failure_text (HTTP_RESPONSE_TIMEOUT));
        else if (t->deadline_ms - now < wait_ms)
            wait_ms = t->deadline_ms - now;
    }
    return (int)wait_ms;
}

/* libcurl makes the pair that wakes its poll without close-on-exec. */
static void
seal_wakeup_sockets (void)
{
    _cleanup_closedir_ DIR *dir = opendir ("/proc/self/fd");
    struct dirent *entry;
    while (dir && (entry = readdir (dir))) {
        int fd = atoi (entry->d_name), domain = 0;
        socklen_t len = sizeof domain;
        if (fd > 2 && getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
            domain == AF_UNIX)
            fcntl (fd, F_SETFD, FD_CLOEXEC);
    }
}

static void
load (struct http_client *c)
{
    c->api = curl_api_get (&c->load_fault);
    if (! c->api)
        return;
    CURLM *multi = c->api->multi_init ();
    seal_wakeup_sockets ();
    c->api->multi_setopt (multi, CURLMOPT_MAXCONNECTS, POOLED_CONNECTIONS);
    pthread_mutex_lock (&c->lock);
    c->multi = multi;
    pthread_mutex_unlock (&c->lock);
}

static struct http_transfer *
take_queue (struct http_client *c, bool *is_stopping)
{
    pthread_mutex_lock (&c->lock);
    while (! c->multi && ! c->queue && ! c->is_stopping)
        pthread_cond_wait (&c->woken, &c->lock);
    struct http_transfer *queue = c->queue;
    c->queue = NULL;
    c->queue_end = &c->queue;
    *is_stopping = c->is_stopping;
    pthread_mutex_unlock (&c->lock);
    return queue;
}

static void
serve_queue (struct http_client *c, struct http_transfer *queue)
{
    while (queue) {
        struct http_transfer *t = queue;
        pthread_mutex_lock (&c->lock);
        queue = t->next_queued;
        unsigned wishes = t->wishes;
        t->wishes = 0;
        t->is_queued = false;
        pthread_mutex_unlock (&c->lock);
        grant (c, t, wishes);
    }
}

static void
wait_for_news (struct http_client *c)
{
    int wait_ms = expire (c);
    if (! c->names) {
        c->api->multi_poll (c->multi, NULL, 0, wait_ms, NULL);
        return;
    }
    struct curl_waitfd names = { .fd = http_names_fd (c->names), .events = CURL_WAIT_POLLIN };
    wait_ms = http_names_timeout_ms (c->names, wait_ms);
    c->api->multi_poll (c->multi, &names, 1, wait_ms, NULL);
    http_names_process (c->names);
}

static void *
run (void *ctx)
{
    struct http_client *c = ctx;
    load (c);
    for (;;) {
        bool is_stopping;
        serve_queue (c, take_queue (c, &is_stopping));
        if (is_stopping)
            break;
        if (! c->multi)
            continue;
        int running;
        c->api->multi_perform (c->multi, &running);
        reap (c);
        wait_for_news (c);
    }
    c->is_ending = true;
    http_names_free (c->names);
    while (c->active)
        finish (c, c->active, HTTP_INTERNAL, "the session is ending");
    if (c->multi)
        c->api->multi_cleanup (c->multi);
    return NULL;
}

/* --- the public side --- */

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

/* Under the client's lock. Signals stay with the threads that expect them. */
static void
ensure_thread (struct http_client *c)
{
    if (c->has_thread || c->is_stopping)
        return;
    sigset_t all, before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    c->has_thread = pthread_create (&c->thread, NULL, run, c) == 0;
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    if (c->has_thread)
        pthread_setname_np (c->thread, "mur-http");
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
            deliver_end (t, HTTP_INTERNAL, "the session is ending");
            transfer_unref (t);
        }
        transfer_unref (t);
    }
    client_unref (c);
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
        deliver_end (t, HTTP_INTERNAL, "no thread for requests");
        transfer_unref (t);
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
    t->method = x_strdup (request->method);
    t->url = x_strdup (request->url);
    t->body_kind = request->body_kind;
    t->body_len = request->body_len;
    t->connect_timeout_ms =
        request->connect_timeout_ms ? request->connect_timeout_ms : DEFAULT_CONNECT_TIMEOUT_MS;
    t->first_byte_timeout_ms = request->first_byte_timeout_ms;
    t->between_bytes_timeout_ms = request->between_bytes_timeout_ms;
    struct strv lines = { 0 };
    http_header_lines (request, &lines);
    t->headers = take_lines (&lines);
    if (request->body_kind == HTTP_BODY_BUFFER) {
        buf_append (&t->out, request->body, request->body_len);
        t->is_out_done = true;
    }
    _cleanup_url_ struct url url = { 0 };
    if (! url_parse (request->url, &url)) {
        t->is_host_literal = host_is_literal (url.authority.host);
        if (request->uses_proxy_env)
            t->proxy = http_find_proxy (&url);
        /* A proxy looks names up itself; a loopback name needs no lookup; a root dot is libcurl's.
         */
        const char *host = url.authority.host;
        bool is_ours = ! t->proxy && ! t->is_host_literal && ! host_is_loopback (host) &&
                       host[strlen (host) - 1] != '.';
        t->name = is_ours ? x_strdup (host) : NULL;
        t->port =
            url.authority.port == URL_NO_PORT ? url_default_port (url.scheme) : url.authority.port;
    }
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init (&recursive);
    pthread_mutexattr_settype (&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init (&t->lock, &recursive);
    pthread_mutexattr_destroy (&recursive);
    pthread_mutex_init (&t->out_lock, NULL);
    wish (t, WISH_START);
    return t;
}

bool
http_transfer_send (struct http_transfer *t, const void *data, size_t len)
{
    pthread_mutex_lock (&t->out_lock);
    bool is_full = t->out.len - t->out_at >= BODY_BACKLOG_BYTES;
    bool wakes = false;
    if (is_full)
        t->was_out_full = true;
    else {
        if (t->out_at > BODY_BACKLOG_BYTES) { /* forget what was sent */
            memmove (t->out.data, t->out.data + t->out_at, t->out.len - t->out_at);
            buf_truncate (&t->out, t->out.len - t->out_at);
            t->out_at = 0;
        }
        buf_append (&t->out, data, len);
        wakes = t->is_out_waiting;
        t->is_out_waiting = false;
    }
    pthread_mutex_unlock (&t->out_lock);
    if (wakes)
        wish (t, WISH_RESUME);
    return ! is_full;
}

void
http_transfer_send_end (struct http_transfer *t, bool is_complete)
{
    pthread_mutex_lock (&t->out_lock);
    t->is_out_done = true;
    t->is_out_broken = ! is_complete;
    t->is_out_waiting = false;
    pthread_mutex_unlock (&t->out_lock);
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
    transfer_unref (t);
}
