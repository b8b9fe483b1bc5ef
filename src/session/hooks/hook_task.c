/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hook_task.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/hooks/hooks_internal.h"
#include "session/state/session.h"

#include <string.h>

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
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    set_text (&all->context_id, task->context_id, strlen (task->context_id));
    pthread_mutex_unlock (&all->lock);
}

void
hooks_attempt_begin (struct session *s, const char *text, size_t len)
{
    struct hooks *all = s->rooms.hooks;
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
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    set_text (&all->output, text, strlen (text));
    pthread_mutex_unlock (&all->lock);
}

void
hooks_task_end (struct session *s)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    all->has_task = false;
    set_text (&all->as_given, NULL, 0);
    set_text (&all->original, NULL, 0);
    set_text (&all->output, NULL, 0);
    pthread_mutex_unlock (&all->lock);
}

/* --- reading --- */

enum task_io_error
hook_task_text (struct session *s, enum task_io_text which, struct arena *arena, const char **text,
                size_t *len)
{
    struct hooks *all = s->rooms.hooks;
    enum task_io_error error = TASK_IO_OK;
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

const char *
hook_task_context (struct session *s, struct arena *arena, const char *otherwise)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return otherwise;
    pthread_mutex_lock (&all->lock);
    const char *context_id = all->context_id ? arena_strdup (arena, all->context_id) : otherwise;
    pthread_mutex_unlock (&all->lock);
    return context_id;
}
