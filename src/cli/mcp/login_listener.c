/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/login_listener.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATH     "/callback"
#define HEAD_MAX 16384
#define HEAD_MS  5000 /* a browser that sent nothing yet is not waited for longer */

extern char **environ;

struct login_listener {
    int fd;
    char *uri;
};

struct login_listener *
login_listener_new (unsigned port, struct mur_error **err)
{
    _cleanup_close_ int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    int on = 1;
    if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind (fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen (fd, 16) < 0 ||
        getsockname (fd, (struct sockaddr *)&at, &len) < 0) {
        mur_fail_errno (err, E_IO_003, "cannot listen on port %u of loopback", port);
        return NULL;
    }
    struct login_listener *l = x_new0 (struct login_listener);
    l->fd = steal_fd (&fd);
    l->uri = x_asprintf ("http://127.0.0.1:%u" PATH, ntohs (at.sin_port));
    return l;
}

void
login_listener_free (struct login_listener *l)
{
    if (! l)
        return;
    close (l->fd);
    free (l->uri);
    free (l);
}

const char *
login_listener_uri (const struct login_listener *l)
{
    return l->uri;
}

/* --- one visit --- */

/* The head of a request, as far as its first line. */
static bool
read_head (int fd, struct buf *head)
{
    uint64_t until = clock_monotonic_ms () + HEAD_MS, now;
    while ((now = clock_monotonic_ms ()) < until && head->len < HEAD_MAX) {
        char data[4096];
        ssize_t n =
            fd_wait (fd, POLLIN, (int64_t)(until - now)) == 1 ? read (fd, data, sizeof data) : 0;
        if (n <= 0)
            return false;
        buf_append (head, data, (size_t)n);
        if (memmem (head->data, head->len, "\r\n\r\n", 4))
            return true;
    }
    return false;
}

/* The query of "GET /callback?QUERY HTTP/1.1". Owned; NULL: it is another request. */
static char *
query_of (const char *line)
{
    static const char wanted[] = "GET " PATH "?";
    if (! str_starts (line, wanted))
        return NULL;
    const char *query = line + strlen (wanted);
    return x_strndup (query, strcspn (query, " #\r\n"));
}

static void
answer (int fd, bool is_taken)
{
    static const char good[] = "<!doctype html><title>murmur</title><p>murmur has the answer. This "
                               "window can be closed.</p>\n";
    static const char bad[] =
        "<!doctype html><title>murmur</title><p>No login waits for this.</p>\n";
    const char *page = is_taken ? good : bad;
    _cleanup_free_ char *text = x_asprintf (
        "HTTP/1.1 %s\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: %zu\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n%s",
        is_taken ? "200 OK" : "404 Not Found", strlen (page), page);
    fd_send_all (fd, text, strlen (text), 5);
    fd_end_answer (fd, 500);
}

static char *
take_visit (struct login_listener *l, login_query_fn *is_ours, void *ctx)
{
    _cleanup_close_ int fd = accept4 (l->fd, NULL, NULL, SOCK_CLOEXEC);
    _cleanup_buf_ struct buf head = { 0 };
    if (fd < 0 || ! read_head (fd, &head))
        return NULL;
    _cleanup_free_ char *query = query_of (head.data);
    bool is_taken = query && is_ours (ctx, query);
    answer (fd, is_taken);
    return is_taken ? steal_ptr (&query) : NULL;
}

/* The address a browser elsewhere ended at, pasted as a line. */
static char *
take_paste (bool *is_open, login_query_fn *is_ours, void *ctx)
{
    char line[HEAD_MAX];
    ssize_t n = read (STDIN_FILENO, line, sizeof line - 1);
    *is_open = n > 0 || (n < 0 && errno == EINTR);
    if (n <= 0)
        return NULL;
    line[n] = '\0';
    const char *mark = strchr (line, '?');
    if (! mark)
        return NULL;
    char *query = x_strndup (mark + 1, strcspn (mark + 1, " #\r\n\t"));
    if (is_ours (ctx, query))
        return query;
    free (query);
    return NULL;
}

char *
login_listener_wait (struct login_listener *l, uint64_t timeout_ms, login_query_fn *is_ours,
                     void *ctx, struct mur_error **err)
{
    uint64_t until = clock_monotonic_ms () + timeout_ms, now;
    bool is_pasted = isatty (STDIN_FILENO);
    while ((now = clock_monotonic_ms ()) < until) {
        struct pollfd fds[] = { { .fd = l->fd, .events = POLLIN },
                                { .fd = is_pasted ? STDIN_FILENO : -1, .events = POLLIN } };
        char *query = NULL;
        if (poll (fds, ARRAY_LEN (fds), (int)(until - now)) <= 0)
            continue;
        if (fds[0].revents)
            query = take_visit (l, is_ours, ctx);
        else if (fds[1].revents)
            query = take_paste (&is_pasted, is_ours, ctx);
        if (query)
            return query;
    }
    mur_fail (err, E_MCP_009, "no answer of a browser came within %llu s",
              (unsigned long long)timeout_ms / 1000);
    return NULL;
}

/* --- the browser --- */

bool
login_open_browser (const char *url)
{
    const char *own = getenv ("BROWSER");
    const char *const programs[] = { own && *own ? own : "xdg-open", "open" };
    posix_spawn_file_actions_t actions;
    bool is_open = false;
    posix_spawn_file_actions_init (&actions);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen (&actions, fd, "/dev/null", O_RDWR, 0);
    for (size_t i = 0; i < ARRAY_LEN (programs) && ! is_open; i++) {
        const char *argv[] = { programs[i], url, NULL };
        pid_t pid;
        is_open = posix_spawnp (&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
                                environ) == 0;
    }
    posix_spawn_file_actions_destroy (&actions);
    return is_open;
}
