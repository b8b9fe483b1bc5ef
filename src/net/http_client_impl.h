/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the HTTP client share: the public side, which leaves wishes, and the thread,
 * which grants them.
 *
 * Threads: other threads only leave wishes (start, resume, release) in the client's queue and wake
 * the thread; libcurl itself is touched by that thread alone. Locks: client->lock is a leaf;
 * transfer->lock is held around callbacks, so that a release waits for a callback under way;
 * transfer->out.lock guards the request body and is a leaf.
 */
#pragma once

#include "net/curl_api.h"
#include "net/http_client.h"
#include "net/http_names.h"

#include <pthread.h>
#include <stdatomic.h>

#define BODY_BACKLOG_BYTES ((size_t)256 << 10)
#define HEAD_LIMIT_BYTES   ((size_t)256 << 10) /* libcurl takes 100 KiB of one line */

enum wish {
    WISH_START = 1,
    WISH_RESUME = 2,
    WISH_RELEASE = 4,
};

struct http_target {
    char *url;
    char *socket_path; /* a unix socket instead of the URL's host; NULL: none */
    char *proxy;       /* NULL: straight */
};

/* What was asked; never changes after http_start. */
struct transfer_request {
    char *method;
    struct http_target to;
    struct curl_slist *headers;
    enum http_body body_kind;
    size_t body_len;
    uint64_t connect_timeout_ms, first_byte_timeout_ms, between_bytes_timeout_ms;
    char *host; /* of the URL */
    char *name; /* host to be looked up by us; NULL: libcurl needs no lookup, or does its own */
    int port;
    bool is_public_only;
};

/* The body on its way out. */
struct transfer_out {
    pthread_mutex_t lock;
    struct buf bytes;
    size_t at;
    bool is_done, is_broken, is_waiting, was_full;
};

/* Of a transfer, the thread's own. */
struct transfer_thread {
    CURL *easy;
    struct curl_slist *addresses; /* of the name, as libcurl takes them */
    bool is_resolving, is_abandoned;
    bool is_active;
    struct http_transfer *next, **link;
    uint64_t deadline_ms;
    bool is_sent, is_cut, is_denied, has_head, is_paused, is_head_large;
    size_t out_total;
    int status;
    struct buf head; /* name\0value\0... of the head being read */
    size_t header_count;
    char error[CURL_ERROR_SIZE];
};

struct http_transfer {
    atomic_uint refs; /* the caller's, the thread's while active, the queue's while wishes wait */
    struct http_client *client;
    struct http_events events;
    void *ctx;
    struct transfer_request asked;

    pthread_mutex_t lock; /* recursive: a callback may release its own transfer */
    bool is_released;

    struct transfer_out out;

    /* The client's queue, under client->lock. */
    unsigned wishes;
    bool is_queued;
    struct http_transfer *next_queued;

    struct transfer_thread own;
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
    char *ca_pem, *cert_pem, *key_pem; /* NULL: none; never change after the first request */
    /* The thread's own. */
    struct http_names *names; /* NULL until a name is needed */
    bool is_ending;
    struct http_transfer *active;
};
