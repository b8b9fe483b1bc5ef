/* SPDX-License-Identifier: Apache-2.0
 *
 * One exchange as its handler sees it: what was asked, and the answer, from whichever thread it
 * comes.
 *
 * Always true: a held answer or an idle stream is never timed out.
 */
#pragma once

#include "net/server/http_server.h"

const char *http_exchange_method (const struct http_exchange *x);
/* Path and query exactly as sent. */
const char *http_exchange_target (const struct http_exchange *x);
/* Header lines in order, names as sent. */
size_t http_exchange_headers (const struct http_exchange *x, const struct http_header **headers);
/* The first line of this name (any case), *count = how many there are (may be NULL). Borrowed; NULL
 * when none. */
const char *http_exchange_header (const struct http_exchange *x, const char *name, size_t *count);
/* Declared length; 0 without one. */
uint64_t http_exchange_content_length (const struct http_exchange *x);
const char *http_exchange_body (const struct http_exchange *x, size_t *len);
/* The body of <len> bytes will be a secret: it is read into one place and overwritten when the
 * exchange is over. From the head handler. */
void http_exchange_keep_secret (struct http_exchange *x, size_t len);
const struct sockaddr *http_exchange_peer (const struct http_exchange *x);

/* Answers. Headers and body are copied; content-length is added. <status> 200..599. Any thread
 * after http_hold. */
void http_reply (struct http_exchange *x, int status, const struct http_header *headers,
                 size_t header_count, const void *body, size_t len);
/* The same with a body from malloc that is taken over. */
void http_reply_take (struct http_exchange *x, int status, const struct http_header *headers,
                      size_t header_count, char *body, size_t len);
/* Room for a large answer: false when those that clients have yet to read leave none, and then
 * http_reply* answers 503 in its place. A single one always fits. Asked by http_reply* itself;
 * before that by who records what was served. */
bool http_reserve_answer (struct http_exchange *x, size_t len);
/* The same, then the connection ends: the write side first, then what the client still sends is
 * read and dropped (64 KiB, 500 ms), so that the refusal is not lost to a reset. */
void http_refuse (struct http_exchange *x, int status, const struct http_header *headers,
                  size_t header_count, const void *body, size_t len);
/* Keeps the exchange beyond the handler. False when no connection may be held any more (503 was
 * answered). */
bool http_hold (struct http_exchange *x);
/* The same for an answer another thread is about to make, in bounded time: it counts as a short
 * request. */
void http_hold_briefly (struct http_exchange *x);

/* --- streams --- */

#define HTTP_STREAM_WAIT 0
#define HTTP_STREAM_END  (-1)
#define HTTP_STREAM_CUT                                                                            \
    (-2) /* it broke off: the client sees the connection end, no end of the body */

struct http_stream_source {
    /* Fills up to <cap> bytes; returns the count, HTTP_STREAM_WAIT (nothing now: http_stream_wake
     * will follow), HTTP_STREAM_END or HTTP_STREAM_CUT. On the server's thread; must not block. */
    ssize_t (*read) (void *ctx, char *out, size_t cap);
    uint64_t tick_ms; /* read is called at least this often, whatever is there; 0 = no */
    /* Nothing of the stream is touched after this. Exactly once, also when the client left or the
     * server closed. */
    void (*closed) (void *ctx);
};

struct http_stream;

/* Answers with a stream that ends with the connection (no content-length, not chunked). From a
 * handler or after http_hold. NULL when no stream may be opened (503 was answered, closed is not
 * called). The stream is valid until source->closed returns. */
struct http_stream *
http_reply_stream (struct http_exchange *x, int status, const struct http_header *headers,
                   size_t header_count, const struct http_stream_source *source, void *ctx);
/* There is something to read (or to end). Any thread, never after closed. */
void http_stream_wake (struct http_stream *s);
/* True when the client has closed the connection: inside a source's read, for a stream that may be
 * silent for long. */
bool http_stream_is_gone (const struct http_stream *s);
/* Tells the loop that something is queued for it. */
void http_server_wake (struct http_server *s);
