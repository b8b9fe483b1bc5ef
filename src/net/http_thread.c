/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_thread.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/http_transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define POOLED_CONNECTIONS 32L
#define IDLE_POLL_MS       600000

static void
set_body_options (struct http_client *c, struct http_transfer *t)
{
    const struct curl_api *api = c->api;
    bool is_head = strcmp (t->asked.method, "HEAD") == 0;
    if (t->asked.body_kind == HTTP_BODY_NONE) {
        api->easy_setopt (t->own.easy, is_head ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1L);
        bool repeats_safely = is_head || strcmp (t->asked.method, "GET") == 0 ||
                              strcmp (t->asked.method, "OPTIONS") == 0;
        if (! repeats_safely) /* libcurl repeats what died on a pooled connection */
            api->easy_setopt (t->own.easy, CURLOPT_FRESH_CONNECT, 1L);
    } else {
        api->easy_setopt (t->own.easy, CURLOPT_UPLOAD, 1L);
        curl_off_t size =
            t->asked.body_len == HTTP_UNKNOWN_LENGTH ? -1 : (curl_off_t)t->asked.body_len;
        api->easy_setopt (t->own.easy, CURLOPT_INFILESIZE_LARGE, size);
    }
    if (! is_head || t->asked.body_kind != HTTP_BODY_NONE)
        api->easy_setopt (t->own.easy, CURLOPT_CUSTOMREQUEST, t->asked.method);
}

static void
set_blob (const struct curl_api *api, CURL *easy, CURLoption option, char *pem)
{
    struct curl_blob blob = { pem, pem ? strlen (pem) : 0, CURL_BLOB_NOCOPY };
    if (pem)
        api->easy_setopt (easy, option, &blob);
}

static void
set_trust (struct http_client *c, CURL *easy)
{
    const char *authorities = getenv ("SSL_CERT_FILE");
    if (! authorities || ! *authorities)
        authorities = getenv ("MURMUR_CA_FILE");
    if (authorities && *authorities && ! c->ca_pem)
        c->api->easy_setopt (easy, CURLOPT_CAINFO, authorities);
    set_blob (c->api, easy, CURLOPT_CAINFO_BLOB, c->ca_pem);
    set_blob (c->api, easy, CURLOPT_SSLCERT_BLOB, c->cert_pem);
    set_blob (c->api, easy, CURLOPT_SSLKEY_BLOB, c->key_pem);
}

static void
set_options (struct http_client *c, struct http_transfer *t)
{
    const struct curl_api *api = c->api;
    CURL *easy = t->own.easy;
    api->easy_setopt (easy, CURLOPT_PRIVATE, t);
    api->easy_setopt (easy, CURLOPT_ERRORBUFFER, t->own.error);
    api->easy_setopt (easy, CURLOPT_NOSIGNAL, 1L);
    api->easy_setopt (easy, CURLOPT_QUICK_EXIT, 1L); /* never wait for a name lookup we gave up */
    api->easy_setopt (easy, CURLOPT_URL, t->asked.to.url);
    api->easy_setopt (easy, CURLOPT_PATH_AS_IS, 1L);
    api->easy_setopt (easy, CURLOPT_PROTOCOLS_STR, "http,https");
    api->easy_setopt (easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    api->easy_setopt (easy, CURLOPT_FOLLOWLOCATION, 0L);
    api->easy_setopt (easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    api->easy_setopt (easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    api->easy_setopt (easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    api->easy_setopt (easy, CURLOPT_HTTPHEADER, t->asked.headers);
    if (t->asked.to.socket_path)
        api->easy_setopt (easy, CURLOPT_UNIX_SOCKET_PATH, t->asked.to.socket_path);
    api->easy_setopt (easy, CURLOPT_PROXY, t->asked.to.proxy ? t->asked.to.proxy : "");
    if (t->own.addresses)
        api->easy_setopt (easy, CURLOPT_RESOLVE, t->own.addresses);
    api->easy_setopt (easy, CURLOPT_CONNECTTIMEOUT_MS, (long)t->asked.connect_timeout_ms);
    api->easy_setopt (easy, CURLOPT_TCP_KEEPALIVE, 1L);
    http_transfer_hook (api, t);
    set_trust (c, easy);
    set_body_options (c, t);
}

/* Takes a transfer off libcurl. The caller still holds the thread's reference. */
static void
detach (struct http_client *c, struct http_transfer *t)
{
    if (! t->own.is_active)
        return;
    t->own.is_active = false;
    *t->own.link = t->own.next;
    if (t->own.next)
        t->own.next->own.link = t->own.link;
    c->api->multi_remove_handle (c->multi, t->own.easy);
    c->api->easy_cleanup (t->own.easy);
    t->own.easy = NULL;
}

static void
finish (struct http_client *c, struct http_transfer *t, enum http_failure failure,
        const char *detail)
{
    detach (c, t);
    http_deliver_end (t, failure, detail);
    http_transfer_unref (t);
}

static void
perform (struct http_client *c, struct http_transfer *t)
{
    t->own.easy = c->api->easy_init ();
    set_options (c, t);
    if (c->api->multi_add_handle (c->multi, t->own.easy) != CURLM_OK) {
        c->api->easy_cleanup (t->own.easy);
        t->own.easy = NULL;
        finish (c, t, HTTP_INTERNAL, "libcurl refused the request");
        return;
    }
    t->own.is_active = true;
    t->own.next = c->active;
    t->own.link = &c->active;
    if (t->own.next)
        t->own.next->own.link = &t->own.next;
    c->active = t;
}

static void
on_name (void *ctx, const char *addresses, const char *fault)
{
    struct http_transfer *t = ctx;
    struct http_client *c = t->client;
    t->own.is_resolving = false;
    if (t->own.is_abandoned)
        http_transfer_unref (t);
    else if (c->is_ending)
        finish (c, t, HTTP_INTERNAL, "the session is ending");
    else if (! addresses)
        finish (c, t, HTTP_DNS_FAILED, fault);
    else {
        /* "+": libcurl lets go of it after its usual minute. */
        t->own.addresses = x_new0 (struct curl_slist);
        t->own.addresses->data = x_asprintf ("+%s:%d:%s", t->asked.name, t->asked.port, addresses);
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
    if (t->asked.name && ! c->names)
        c->names = http_names_new (NULL);
    if (! t->asked.name || ! c->names) {
        perform (c, t);
        return;
    }
    t->own.is_resolving = true;
    http_names_find (c->names, t->asked.name, on_name, t);
}

static void
grant (struct http_client *c, struct http_transfer *t, unsigned wishes)
{
    if ((wishes & WISH_START) && ! (wishes & WISH_RELEASE))
        begin (c, t);
    else if (wishes & WISH_START)
        http_transfer_unref (t); /* released before it began */
    else if ((wishes & WISH_RELEASE) && t->own.is_resolving)
        t->own.is_abandoned = true; /* the thread's reference goes with the lookup */
    else if ((wishes & WISH_RELEASE) && t->own.is_active) {
        detach (c, t);
        http_transfer_unref (t);
    } else if ((wishes & WISH_RESUME) && t->own.is_active) {
        if (t->own.is_paused)
            http_transfer_set_deadline (t, t->asked.between_bytes_timeout_ms);
        t->own.is_paused = false;
        c->api->easy_pause (t->own.easy, CURLPAUSE_CONT);
    }
    http_transfer_unref (t); /* the queue's */
}

static enum http_failure
connect_failure (struct http_client *c, struct http_transfer *t)
{
    long reason = 0;
    c->api->easy_getinfo (t->own.easy, CURLINFO_OS_ERRNO, &reason);
    if (t->own.is_cut)
        return HTTP_RESET;
    if (t->own.is_denied)
        return HTTP_DENIED;
    return reason == ETIMEDOUT ? HTTP_CONNECT_TIMEOUT : HTTP_REFUSED;
}

/* What went wrong with TLS: libcurl has few codes for it, and says more in words. */
static enum http_failure
tls_failure (const char *words, enum http_failure otherwise)
{
    static const struct {
        const char *words;
        enum http_failure failure;
    } known[] = {
        { "does not match target host name", HTTP_WRONG_NAME },
        { "no alternative certificate subject name", HTTP_WRONG_NAME },
        { "certificate has expired", HTTP_EXPIRED },
        { "certificate is not yet valid", HTTP_EXPIRED },
        { "wrong version number", HTTP_NO_TLS },
        { "packet length too long", HTTP_NO_TLS },
        { "http request", HTTP_NO_TLS },
        { "certificate verify locations", HTTP_NO_AUTHORITIES },
    };
    for (size_t i = 0; i < ARRAY_LEN (known); i++)
        if (strstr (words, known[i].words))
            return known[i].failure;
    return otherwise;
}

#define CURLE_TOO_LARGE_CODE 100 /* CURLE_TOO_LARGE, which older headers lack */

static enum http_failure
classify (struct http_client *c, struct http_transfer *t, CURLcode code)
{
    if (t->own.is_head_large)
        return HTTP_LARGE_HEAD;
    enum http_failure cut = t->own.has_head ? HTTP_INCOMPLETE : HTTP_RESET;
    switch ((int)code) {
    case CURLE_OK:
        return HTTP_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return HTTP_DNS_FAILED;
    case CURLE_COULDNT_CONNECT:
        return connect_failure (c, t);
    case CURLE_OPERATION_TIMEDOUT:
        return t->own.is_sent ? HTTP_RESPONSE_TIMEOUT : HTTP_CONNECT_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return tls_failure (t->own.error, HTTP_UNTRUSTED);
    case CURLE_SSL_CACERT_BADFILE:
        return HTTP_NO_AUTHORITIES;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return tls_failure (t->own.error, HTTP_TLS_FAILED);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_ABORTED_BY_CALLBACK:
        return cut;
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9 is what libcurl calls any bytes without a head */
    case CURLE_WEIRD_SERVER_REPLY:
        return t->own.is_sent ? HTTP_NO_HTTP : HTTP_INTERNAL;
    case CURLE_OUT_OF_MEMORY: /* of a line longer than libcurl keeps, and so is the next */
    case CURLE_TOO_LARGE_CODE:
        return t->own.is_sent && ! t->own.has_head ? HTTP_LARGE_HEAD : HTTP_INTERNAL;
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
        const char *detail = t->own.error[0] ? t->own.error : c->api->easy_strerror (code);
        finish (c, t, failure,
                failure == HTTP_DENIED || failure == HTTP_LARGE_HEAD ? http_failure_text (failure)
                                                                     : detail);
    }
}

/* Ends what waited too long; returns how long the thread may sleep for the rest. */
static int
expire (struct http_client *c)
{
    uint64_t now = clock_monotonic_ms (), wait_ms = IDLE_POLL_MS;
    for (struct http_transfer *t = c->active, *next; t; t = next) {
        next = t->own.next;
        if (! t->own.deadline_ms)
            continue;
        if (t->own.deadline_ms <= now)
            finish (c, t, HTTP_RESPONSE_TIMEOUT, http_failure_text (HTTP_RESPONSE_TIMEOUT));
        else if (t->own.deadline_ms - now < wait_ms)
            wait_ms = t->own.deadline_ms - now;
    }
    return (int)wait_ms;
}

struct sockets {
    int *fds;
    size_t len, cap;
};

static void
find_local_sockets (struct sockets *out)
{
    _cleanup_closedir_ DIR *dir = opendir ("/proc/self/fd");
    struct dirent *entry;
    while (dir && (entry = readdir (dir))) {
        int fd = atoi (entry->d_name), domain = 0;
        socklen_t len = sizeof domain;
        if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain != AF_UNIX)
            continue;
        x_grow (out->fds, out->len, out->cap);
        out->fds[out->len++] = fd;
    }
}

/* libcurl makes the pair that wakes its poll without close-on-exec. What was there before is the
 * program's own. */
static void
seal_new_sockets (const struct sockets *before)
{
    struct sockets now = { 0 };
    find_local_sockets (&now);
    for (size_t i = 0; i < now.len; i++) {
        bool is_new = true;
        for (size_t j = 0; is_new && j < before->len; j++)
            is_new = before->fds[j] != now.fds[i];
        if (is_new)
            fcntl (now.fds[i], F_SETFD, FD_CLOEXEC);
    }
    free (now.fds);
}

static void
load (struct http_client *c)
{
    c->api = curl_api_get (&c->load_fault);
    if (! c->api)
        return;
    struct sockets before = { 0 };
    find_local_sockets (&before);
    CURLM *multi = c->api->multi_init ();
    seal_new_sockets (&before);
    free (before.fds);
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

void *
http_client_run (void *ctx)
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
