/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hook may read while it runs: the task's texts and the conversation's record, each behind
 * its grant (docs/spec/session.md 9.4, 11.3).
 */
#include "session/hooks/hook_messages.h"
#include "session/hooks/hook_task.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define CURSOR_PREFIX "mc_"

/* --- task-io --- */

static enum task_io_error
task_text (void *ctx, enum task_io_text which, struct arena *arena, const char **text, size_t *len)
{
    struct hook *h = ctx;
    return h->artifact->grant->may_read_task_io
               ? hook_task_text (h->session, which, arena, text, len)
               : TASK_IO_NOT_GRANTED;
}

/* --- the conversation --- */

/* Messages left below a cursor. False: it is none of ours. */
static bool
read_cursor (const char *cursor, size_t total, size_t *left)
{
    *left = total;
    if (! cursor)
        return true;
    char *end;
    if (! str_starts (cursor, CURSOR_PREFIX) || cursor[3] < '0' || cursor[3] > '9')
        return false;
    unsigned long long position = strtoull (cursor + strlen (CURSOR_PREFIX), &end, 10);
    if (*end || position > total)
        return false;
    *left = (size_t)position;
    return true;
}

static bool
read_messages (void *ctx, const char *cursor, uint32_t limit, struct arena *arena,
               struct conversation_page *page, const char **refusal)
{
    struct hook *h = ctx;
    struct session *s = h->session;
    if (! h->artifact->grant->may_read_conversation) {
        *refusal = "not-granted";
        return false;
    }
    const char *context_id = hook_task_context (s, arena, s->asked->context_id);
    _cleanup_messages_ struct message_list list = { 0 };
    if (context_id) {
        struct conversation *record = conversation_new (s->policy->record_store, context_id, NULL);
        conversation_load (record, &s->fence_word, &list);
        conversation_free (record);
    }
    size_t left;
    if (! read_cursor (cursor, list.len, &left)) {
        *refusal = "invalid-cursor";
        return false;
    }
    size_t count = left < limit ? left : limit;
    page->messages.items = arena_new_array (arena, struct hook_message, count + 1);
    page->messages.len = count;
    for (size_t i = 0; i < count; i++)
        hook_message_fill (list.items[left - 1 - i], arena, &page->messages.items[i]);
    if (left > count)
        page->next_cursor = arena_printf (arena, CURSOR_PREFIX "%zu", left - count);
    page->total = (uint32_t)list.len;
    return true;
}

void
hook_bind (struct hook *h)
{
    h->inference = (struct inference_host){ h, hook_run_inference };
    h->task_io = (struct task_io_host){ h, task_text };
    h->conversation = (struct conversation_host){ h, read_messages };
}
