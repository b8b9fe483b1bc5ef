/* SPDX-License-Identifier: Apache-2.0
 *
 * What every part of a server does to it, however it is reached: something is sent, it is
 * condemned, it is gone, it is reported.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "mcp/definitions.h"
#include "session/servers/server_internal.h"

#include <errno.h>
#include <string.h>

/* --- sending --- */

void
server_send_call (struct mcp_server *s, int64_t id, const char *method, const json_t *params)
{
    _cleanup_json_ json_t *own = id ? json_integer (id) : NULL;
    if (s->state == SERVER_UP)
        s->way->send (s, id, method, params, mcp_request_text (own, method, params));
}

void
server_send_answer (struct mcp_server *s, char *text)
{
    if (s->state == SERVER_UP)
        s->way->send (s, 0, NULL, NULL, text);
    else
        free (text);
}

struct pending *
server_find_pending (struct mcp_server *s, const json_t *id)
{
    for (struct pending *p = s->pending; p && json_is_integer (id); p = p->next)
        if (p->id == json_integer_value (id) && ! p->is_done)
            return p;
    return NULL;
}

/* --- beginning --- */

void
server_begin_life (struct mcp_server *s)
{
    mcp_client_clear (&s->client);
    s->client.asks = s->setup.asks;
    buf_truncate (&s->io.tail, 0);
    s->io.noise_lines = s->io.noise_bytes = s->io.ending_ms = 0;
    s->io.has_term = s->has_new_list = s->is_opened = false;
    free (s->io.death);
    s->io.death = NULL;
}

bool
server_start_thread (struct mcp_server *s, void *(*pump) (void *), struct mur_error **err)
{
    int failed = thread_start (&s->thread, pump, s);
    errno = failed;
    s->has_thread = ! failed;
    return ! failed || mur_fail_errno (err, E_IO_003, "cannot start a thread");
}

/* --- ending --- */

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
    s->way->kill (s);
    pthread_cond_broadcast (&s->changed);
}

void
server_gone (struct mcp_server *s, bool was_asked)
{
    if (! was_asked) {
        memmove (s->deaths_ms + 1, s->deaths_ms, sizeof s->deaths_ms - sizeof s->deaths_ms[0]);
        s->deaths_ms[0] = clock_monotonic_ms ();
    }
    s->state = SERVER_DOWN;
    s->is_opened = false;
    for (struct pending *p = s->pending; p; p = p->next)
        p->is_done = true;
    pthread_cond_broadcast (&s->changed);
}

void
server_settle (struct mcp_server *s)
{
    if (s->has_thread)
        pthread_join (s->thread, NULL);
    s->has_thread = false;
    /* Its namespaces with it: what a kill may still be under way for is not where the next runs. */
    if (s->has_walls)
        server_walls_free (&s->walls);
    s->has_walls = false;
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
