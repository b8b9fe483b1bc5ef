/* SPDX-License-Identifier: Apache-2.0
 *
 * A scripted server on loopback. See loop_server.h.
 */
#include "tests/unit/net/loop_server.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define MOST_CONNECTIONS 64

struct loop_server {
    int fd;
    int port;
    loop_script *script;
    void *ctx;
    pthread_t thread;
    atomic_bool is_stopping;
    atomic_int connections;
    pthread_t threads[MOST_CONNECTIONS];
};

struct connection {
    struct loop_server *server;
    int fd, number;
};

static void *
serve (void *arg)
{
    struct connection *c = arg;
    c->server->script (c->server->ctx, c->fd, c->number);
    close (c->fd);
    free (c);
    return NULL;
}

static void *
accept_all (void *arg)
{
    struct loop_server *s = arg;
    while (! atomic_load (&s->is_stopping)) {
        if (fd_wait (s->fd, POLLIN, 20) <= 0)
            continue;
        int fd = accept4 (s->fd, NULL, NULL, SOCK_CLOEXEC);
        int number = atomic_load (&s->connections);
        if (fd < 0 || number == MOST_CONNECTIONS)
            continue;
        struct connection *c = x_new0 (struct connection);
        *c = (struct connection){ s, fd, number };
        pthread_create (&s->threads[number], NULL, serve, c);
        atomic_fetch_add (&s->connections, 1);
    }
    return NULL;
}

struct loop_server *
loop_server_new (loop_script *script, void *ctx)
{
    struct loop_server *s = x_new0 (struct loop_server);
    s->script = script;
    s->ctx = ctx;
    s->fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    if (bind (s->fd, (struct sockaddr *)&at, len) || listen (s->fd, 64) ||
        getsockname (s->fd, (struct sockaddr *)&at, &len))
        abort ();
    s->port = ntohs (at.sin_port);
    pthread_create (&s->thread, NULL, accept_all, s);
    return s;
}

void
loop_server_free (struct loop_server *s)
{
    atomic_store (&s->is_stopping, true);
    pthread_join (s->thread, NULL);
    close (s->fd);
    for (int i = 0; i < atomic_load (&s->connections); i++)
        pthread_join (s->threads[i], NULL);
    free (s);
}

int
loop_server_port (const struct loop_server *s)
{
    return s->port;
}

int
loop_server_connections (const struct loop_server *s)
{
    return atomic_load (&s->connections);
}

static bool
read_until (int fd, struct buf *out, const char *mark)
{
    char c;
    while (out->len < 1 << 20) {
        if (read (fd, &c, 1) != 1)
            return false;
        buf_putc (out, c);
        if (str_ends (out->data, mark))
            return true;
    }
    return false;
}

static bool
read_count (int fd, struct buf *out, size_t len)
{
    char *to = buf_reserve (out, len);
    if (! fd_read_exact (fd, to, len))
        return false;
    out->len += len;
    out->data[out->len] = '\0';
    return true;
}

static bool
read_chunks (int fd, struct buf *body)
{
    for (;;) {
        _cleanup_buf_ struct buf line = { 0 };
        if (! read_until (fd, &line, "\r\n"))
            return false;
        size_t len = strtoul (line.data, NULL, 16);
        if (! read_count (fd, len ? body : &line, len))
            return false;
        buf_truncate (&line, 0);
        if (! read_until (fd, &line, "\r\n"))
            return false;
        if (len == 0)
            return true;
    }
}

bool
loop_read_request (int fd, struct buf *head, struct buf *body)
{
    buf_truncate (head, 0);
    buf_truncate (body, 0);
    if (! read_until (fd, head, "\r\n\r\n"))
        return false;
    const char *length = strcasestr (head->data, "\r\ncontent-length:");
    if (length)
        return read_count (fd, body, strtoul (length + 17, NULL, 10));
    return ! strcasestr (head->data, "\r\ntransfer-encoding: chunked") || read_chunks (fd, body);
}

void
loop_send (int fd, const char *text)
{
    (void)! send (fd, text, strlen (text), MSG_NOSIGNAL);
}

void
loop_answer (int fd, const char *status, const char *body)
{
    _cleanup_free_ char *text =
        x_asprintf ("HTTP/1.1 %s\r\ncontent-length: %zu\r\n\r\n%s", status, strlen (body), body);
    loop_send (fd, text);
}

void
loop_reset_on_close (int fd)
{
    struct linger hard = { .l_onoff = 1, .l_linger = 0 };
    setsockopt (fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

int
open_descriptors (void)
{
    _cleanup_closedir_ DIR *dir = opendir ("/proc/self/fd");
    int count = -1; /* the directory itself */
    struct dirent *entry;
    while ((entry = readdir (dir)))
        count += entry->d_name[0] != '.';
    return count;
}
