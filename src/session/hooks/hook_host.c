/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hook may read while it runs: the task's texts and the conversation's record, each behind
 * its grant (spec/session.md 9.4, 11.3).
 */
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define CURSOR_PREFIX "mc_"

/* --- what is in scope --- */

static void
set_text (char **to, const char *text, size_t len)
{
    free (*to);
    *to = text ? x_memdup (text, len + 1) : NULL;
    if (*to)
        (*to)[len] = '\0';
}

void
hooks_task_begin (struct session *s, const struct task *task)
{
    struct hooks *all = s->hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    set_text (&all->context_id, task->context_id, strlen (task->context_id));
    pthread_mutex_unlock (&all->lock);
}

void
hooks_attempt_begin (struct session *s, const char *text, size_t len)
{
    struct hooks *all = s->hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    set_text (&all->output, NULL, 0);
    if (text) {
        set_text (&all->as_given, text, len);
        all->as_given_len = len;
    }
    if (text && ! all->has_task) {
        set_text (&all->original, text, len);
        all->original_len = len;
    }
    all->has_task = true;
    pthread_mutex_unlock (&all->lock);
}

void
hooks_output (struct session *s, const char *text)
{
    struct hooks *all = s->hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    set_text (&all->output, text, strlen (text));
    pthread_mutex_unlock (&all->lock);
}

void
hooks_task_end (struct session *s)
{
    struct hooks *all = s->hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    all->has_task = false;
    set_text (&all->as_given, NULL, 0);
    set_text (&all->original, NULL, 0);
    set_text (&all->output, NULL, 0);
    pthread_mutex_unlock (&all->lock);
}

/* --- task-io --- */

static enum task_io_error
task_text (void *ctx, enum task_io_text which, struct arena *arena, const char **text, size_t *len)
{
    struct hook *h = ctx;
    struct hooks *all = h->session->hooks;
    enum task_io_error error = TASK_IO_OK;
    if (! h->artifact->grant->may_read_task_io)
        return TASK_IO_NOT_GRANTED;
    if (! all)
        return TASK_IO_NO_TASK;
    pthread_mutex_lock (&all->lock);
    const char *source = which == TASK_IO_OUTPUT     ? all->output
                         : which == TASK_IO_ORIGINAL ? all->original
                                                     : all->as_given;
    if (! all->has_task || (! source && which != TASK_IO_OUTPUT)) {
        error = TASK_IO_NO_TASK;
    } else if (! source) {
        error = TASK_IO_NO_OUTPUT;
    } else {
        *len = which == TASK_IO_OUTPUT     ? strlen (source)
               : which == TASK_IO_ORIGINAL ? all->original_len
                                           : all->as_given_len;
        *text = arena_strndup (arena, source, *len);
    }
    pthread_mutex_unlock (&all->lock);
    return error;
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
    const char *context_id = s->asked->context_id;
    if (s->hooks) {
        pthread_mutex_lock (&s->hooks->lock);
        if (s->hooks->context_id)
            context_id = arena_strdup (arena, s->hooks->context_id);
        pthread_mutex_unlock (&s->hooks->lock);
    }
    _cleanup_messages_ struct message_list list = { 0 };
    if (context_id) {
        struct conversation *record = conversation_new (s->policy->record_store, context_id, NULL);
        conversation_load (record, &list);
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
