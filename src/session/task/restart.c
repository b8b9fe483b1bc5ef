/* SPDX-License-Identifier: Apache-2.0 */
#include "session/task/restart.h"

#include "base/alloc.h"
#include "session/conversation/fence.h"
#include "session/state/session.h"
#include "session/task/task_text.h"

static const char *const headings[RESTART_SECTIONS] = { "Reopen feedback", "Member answers",
                                                        "Delegation outcomes", "Done check" };

static bool
keep_original (struct session *s, struct running_task *t)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf original = { 0 };
    if (t->onward.original_text)
        return true;
    if (! task_text_read (s, &original, &err))
        return false;
    t->onward.original_text = buf_steal (&original);
    return true;
}

bool
restart_with (struct session *s, struct running_task *t, enum restart_section section,
              const char *text)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_buf_ struct buf whole = { 0 };
    if (! keep_original (s, t))
        return false;
    buf_printf (&t->onward.sections[section], "%s%s", t->onward.sections[section].len ? "\n\n" : "",
                text);
    buf_puts (&whole, t->onward.original_text);
    size_t fenced_len = 0;
    for (int i = 0; i < RESTART_SECTIONS; i++) {
        if (t->onward.sections[i].len)
            buf_printf (&whole, "\n\n---\n\n# %s\n\n%s\n", headings[i], t->onward.sections[i].data);
        if (i == RESTART_REOPEN)
            fenced_len = whole.len;
    }
    if (! task_text_write (s, whole.data, whole.len, &err))
        return false;
    t->onward.is_continuing = false;
    t->onward.fenced_len = fenced_len;
    return true;
}

void
restart_append_task (const struct session *s, const struct running_task *t, const char *source,
                     const char *text, size_t len, struct buf *out)
{
    if (! t->is_fenced) {
        buf_append (out, text, len);
        return;
    }
    size_t fenced_len =
        t->onward.fenced_len && t->onward.fenced_len < len ? t->onward.fenced_len : len;
    fence_append (out, &s->fence_word, source, text, fenced_len);
    buf_append (out, text + fenced_len, len - fenced_len);
}
