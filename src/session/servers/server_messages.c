/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server says: answers to what was asked, progress, a changed list, its own questions, and
 * noise between them.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/logging.h"
#include "session/servers/server_internal.h"
#include "session/servers/server_request.h"

#include <string.h>

#define NOISE_TOLD     8 /* lines that may say why it does not open */
#define NOISE_LINE_MAX 200
#define MESSAGES_MAX   64 /* that wait to be told */

/* A banner, a log on the wrong stream: skipped and counted, up to a bound. */
static void
take_noise (struct mcp_server *s, const char *line, size_t len)
{
    s->io.noise_lines++;
    s->io.noise_bytes += len + 1;
    if (! s->is_opened && s->io.noise_lines <= NOISE_TOLD) {
        buf_append (&s->io.tail, line, utf8_cut (line, len, NOISE_LINE_MAX));
        buf_putc (&s->io.tail, '\n');
    }
    if (line[0] == '{' && ! utf8_is_valid (line, len))
        server_condemn (s, E_MCP_005, "it wrote a message that is not UTF-8");
    else if (s->io.noise_bytes > SERVER_NOISE_MAX)
        server_condemn (s, E_MCP_005,
                        "it wrote more than 1 MiB that is no message, first or last: %.80s", line);
}

static void
take_answer (struct mcp_server *s, const struct mcp_message *m)
{
    struct pending *p = server_find_pending (s, m->id);
    if (! p) /* of a call nobody waits for any more */
        return;
    p->result = json_incref ((json_t *)(uintptr_t)m->result);
    p->error = json_incref ((json_t *)(uintptr_t)m->error);
    p->is_done = true;
    pthread_cond_broadcast (&s->changed);
}

static void
keep_step (struct pending *p, const json_t *params)
{
    const char *message = json_get_string (params, "message");
    if (p->step_count == PROGRESS_STEPS)
        free (p->steps[--p->step_count].message);
    p->steps[p->step_count++] =
        (struct progress_step){ p->progress, json_number_value (json_object_get (params, "total")),
                                message ? x_strdup (message) : NULL };
}

static void
take_progress (struct mcp_server *s, const json_t *params)
{
    struct pending *p = server_find_pending (s, json_object_get (params, "progressToken"));
    double at = json_number_value (json_object_get (params, "progress"));
    if (! p || (p->progress_count && at <= p->progress))
        return;
    p->progress = at;
    p->progress_count++;
    p->heard_ms = clock_monotonic_ms ();
    if (p->ask->listener)
        keep_step (p, params);
    pthread_cond_broadcast (&s->changed);
}

/* A message names no call: it is of one when no other runs, and else of nobody. */
static void
take_message (struct mcp_server *s, const json_t *params)
{
    struct pending *p = s->pending;
    const struct call_listener *who = p && ! p->next ? p->ask->listener : NULL;
    if (! who || ! mcp_level_is_heard (who->log_level, json_get_string (params, "level")) ||
        json_array_size (p->said) == MESSAGES_MAX)
        return;
    if (! p->said)
        p->said = json_array ();
    json_array_append (p->said, (json_t *)(uintptr_t)params);
    pthread_cond_broadcast (&s->changed);
}

static void
take_notification (struct mcp_server *s, const struct mcp_message *m)
{
    if (str_eq (m->method, "notifications/progress")) {
        take_progress (s, m->params);
    } else if (str_eq (m->method, "notifications/message")) {
        take_message (s, m->params);
    } else if (str_eq (m->method, "notifications/tools/list_changed")) {
        s->has_new_list = true;
        s->list_ms = clock_monotonic_ms ();
        pthread_cond_broadcast (&s->changed);
    }
}

/* Who waits for a call of its own answers; what nobody answers is refused by name. */
static void
take_question (struct mcp_server *s, struct mcp_message *m)
{
    struct pending *p = NULL;
    if (mcp_input_of (m->method) & s->client.asks)
        for (p = s->pending; p && (p->is_done || ! p->ask->answer || p->question.whole);)
            p = p->next;
    if (! p) {
        server_send_answer (s, mcp_client_answer (m, NULL));
        return;
    }
    p->question = *m;
    *m = (struct mcp_message){ 0 };
    pthread_cond_broadcast (&s->changed);
}

void
server_take_line (struct mcp_server *s, const char *line, size_t len)
{
    _cleanup_mcp_message_ struct mcp_message m;
    mcp_message_read (&m, line, len);
    if (m.kind == MCP_RESPONSE)
        take_answer (s, &m);
    else if (m.kind == MCP_NOTIFICATION)
        take_notification (s, &m);
    else if (m.kind == MCP_REQUEST)
        take_question (s, &m);
    else
        take_noise (s, line, len);
}
