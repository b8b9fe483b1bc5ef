/* SPDX-License-Identifier: Apache-2.0
 *
 * What every part of a server does to it: something is sent, it is condemned, it is reported.
 */
#include "base/alloc.h"
#include "mcp/definitions.h"
#include "session/servers/server_internal.h"

#include <signal.h>
#include <string.h>

#define QUEUE_MAX ((size_t)64 << 20)

void
server_wake (struct mcp_server *s)
{
    uint64_t one = 1;
    if (s->io.wake_fd >= 0)
        (void)! write (s->io.wake_fd, &one, sizeof one);
}

void
server_send (struct mcp_server *s, char *text)
{
    _cleanup_free_ char *taken = text;
    if (s->state != SERVER_UP)
        return;
    if (s->io.queue.len > QUEUE_MAX) {
        server_condemn (s, E_MCP_005, "it does not read what it is sent");
        return;
    }
    buf_puts (&s->io.queue, taken);
    buf_putc (&s->io.queue, '\n');
    server_wake (s);
}

void
server_condemn (struct mcp_server *s, enum diag_code code, const char *fmt, ...)
{
    if (s->state == SERVER_DOWN)
        return;
    if (! s->io.death) {
        va_list ap;
        va_start (ap, fmt);
        s->io.death = x_vasprintf (fmt, ap);
        va_end (ap);
        s->io.death_code = code;
    }
    s->state = SERVER_ENDING;
    confinement_kill_all (s->walls.confinement);
    killpg (s->io.pid, SIGKILL);
    pthread_cond_broadcast (&s->changed);
}

/* A copy of its end without control characters of a terminal; under the lock or after its end. */
char *
server_stderr_tail (struct mcp_server *s)
{
    const char *text = s->io.tail.data ? s->io.tail.data : "";
    size_t len = s->io.tail.len, most = 2000;
    const char *from = len > most ? text + len - most : text;
    const char *line = len > most ? strchr (from, '\n') : NULL;
    if (line && line[1])
        from = line + 1;
    char *tail = mcp_text_shown (from);
    for (size_t end = strlen (tail); end && strchr ("\r\n\t ", tail[end - 1]); end--)
        tail[end - 1] = '\0';
    return tail;
}
