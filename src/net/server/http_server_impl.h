/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the HTTP server share: its connections, exchanges and streams.
 */
#pragma once

#include "net/server/http_server.h"

#include "base/buf.h"
#include "net/server/http_exchange.h"

#include <pthread.h>
#include <sys/socket.h>

/* What is read of a body that nobody wants, so that its connection lives on. */
#define DRAIN_BYTES ((size_t)64 << 10)

struct MHD_Connection;
struct MHD_Daemon;

/* What an event of our own epoll may be about, beside the server's own descriptors. */
enum watched {
    WATCHED_CONNECTION,
    WATCHED_DRAIN,
};

/* Connections that are not served yet, oldest first. */
struct line {
    struct connection *oldest, *newest;
};

/* One accepted connection, as long as libmicrohttpd holds it. */
struct connection {
    enum watched kind; /* first, as in struct drain */
    struct http_server *server;
    int fd;
    struct sockaddr_storage peer;
    struct line *line; /* waiting for a head, or receiving a body; NULL: being served */
    uint64_t since_ms;
    struct connection *older, *newer;
    bool drains; /* refused: read and drop what still comes */
    struct connection *next_hung_up;
    bool is_hung_up; /* the client will send no more; on the list of those, once */
};

/* A refused connection after libmicrohttpd: its duplicate, being drained. */
struct drain {
    enum watched kind;
    int fd;
    size_t left;
    uint64_t until_ms;
    struct drain *next;
};

struct http_stream {
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd; /* the connection's */
    const struct http_stream_source *source;
    void *ctx;
    bool is_suspended;
    uint64_t tick_at_ms;
    bool is_queued; /* under server->lock */
    struct http_stream *next_queued;
    struct http_stream *next, **link; /* the thread's list of all */
};

struct body_bounds {
    size_t limit, dropped;
    size_t counted; /* in the server's held bytes */
};

/* What clients make the server hold, all connections together. */
struct held_bytes {
    size_t answers; /* large ones that are not read yet; under server->lock */
    size_t bodies;  /* not answered yet; the thread's own */
};

/* What a client asked. */
struct exchange_request {
    char *target;
    const char *method;
    struct http_header *headers;
    size_t header_count, header_cap;
    struct strv trimmed; /* values that needed a copy */
    uint64_t content_length;
    struct buf body;
    struct body_bounds bounds;
    bool has_head, drops_body;
    bool has_bad_name; /* of a header */
};

/* The answer; written once, under server->lock when held. */
struct exchange_answer {
    bool is_there, closes;
    int status;
    struct strv lines; /* name, value, name, value, ... */
    char *text;
    size_t len, reserved; /* reserved: counted in server->answer_bytes */
    struct http_stream *stream;
};

struct http_exchange {
    struct http_server *server;
    struct connection *connection;
    struct MHD_Connection *mhd;
    struct exchange_request asked;
    bool is_seen, is_held, is_long_lived, is_suspended, is_dropped, is_secret;
    struct exchange_answer answer;

    bool is_queued; /* under server->lock */
    struct http_exchange *next_queued;
    struct http_exchange *next, **link; /* the thread's list of held ones */
};

/* Of a server, its thread's own. */
struct server_thread {
    struct MHD_Daemon *daemon;
    unsigned connections;
    unsigned long_lived;   /* held answers and streams */
    struct line waiting;   /* no complete head yet */
    struct line receiving; /* a head, and not its whole body */
    struct connection *hung_up;
    struct drain *drains;
    struct http_stream *streams;
    uint64_t next_tick_ms; /* no stream's tick is earlier; 0 = none has one */
    struct http_exchange *held;
    bool is_accepting;
    bool is_ending; /* is_closing, seen by the thread */
    uint64_t accept_again_ms;
};

struct http_server {
    struct http_server_limits limits;
    const struct http_server_handler *handler;
    void *ctx;
    unsigned port;
    int listen_fd, epoll_fd, event_fd;
    pthread_t thread;

    pthread_mutex_t lock;
    bool has_thread, is_closing;
    uint64_t close_by_ms;
    struct http_exchange *answered;
    struct http_stream *woken;
    struct held_bytes held_bytes;

    struct server_thread own;
};
