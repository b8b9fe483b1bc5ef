/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_task.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/player_internal.h"

#include <string.h>

static bool
is_wanted (const struct player *p, size_t ordinal)
{
    if (p->modes.has_until && ordinal > p->modes.from_task)
        return false;
    return ! p->modes.has_from || ordinal <= p->modes.from_task;
}

const struct rec_task *
player_next_task (struct player *p)
{
    const struct rec_task *t = NULL;
    pthread_mutex_lock (&p->lock);
    if (! p->is_stopped && p->next_task < p->record->task_count && is_wanted (p, p->next_task)) {
        t = &p->record->tasks[p->next_task++];
        p->task = t;
        p->call_turn = 0;
        p->call_number = 0;
        p->counts.tasks++;
    }
    pthread_mutex_unlock (&p->lock);
    return t;
}

static const struct rec_model *
first_request (const struct rec_task *t)
{
    for (size_t i = 0; i < t->models.count; i++)
        if (t->models.items[i].has_messages && ! t->models.items[i].origin)
            return &t->models.items[i];
    return NULL;
}

/* The concatenated text blocks of a message body. */
static bool
take_text (const struct record *r, const char *sha, struct buf *out, struct mur_error **err)
{
    _cleanup_buf_ struct buf body = { 0 };
    if (! record_body (r, sha, &body, err))
        return false;
    _cleanup_json_ json_t *m = json_loadb (body.data ? body.data : "", body.len, 0, NULL);
    size_t i;
    const json_t *block;
    json_array_foreach (json_object_get (m, "content"), i, block)
    {
        const json_t *text = json_object_get (block, "text");
        buf_append (out, json_string_value (text) ? json_string_value (text) : "",
                    json_string_length (text));
    }
    return true;
}

/* The text of an untrusted task lies within a fence, whose own lines are not it. */
static void
unfence (struct buf *text)
{
    const char *first = text->data ? strchr (text->data, '\n') : NULL;
    const char *last = text->data ? strrchr (text->data, '\n') : NULL;
    if (! first || last == first || ! str_starts (text->data, "<untrusted-content ") ||
        ! str_starts (last + 1, "</untrusted-content"))
        return;
    size_t from = (size_t)(first + 1 - text->data), len = (size_t)(last - first) - 1;
    memmove (text->data, text->data + from, len);
    buf_truncate (text, len);
}

bool
player_task_text (struct player *p, const struct rec_task *t, struct buf *out,
                  struct mur_error **err)
{
    if (t->text_sha)
        return record_body (p->record, t->text_sha, out, err);
    const struct rec_model *m = first_request (t);
    size_t count = 0;
    _cleanup_free_ const char **all = m ? record_messages (m, &count) : NULL;
    if (! count) {
        mur_fail (err, E_RPL_003, "the record does not hold the text of task %zu", t->ordinal);
        return mur_hint (err, "no request of it was answered, and its trace was written before "
                              "texts of tasks were kept");
    }
    if (! take_text (p->record, all[count - 1], out, err))
        return false;
    if (! t->is_trusted)
        unfence (out);
    return true;
}

const char **
player_prior (const struct rec_task *t, uint64_t turns, size_t *count)
{
    const struct rec_model *m = turns ? record_model (t, NULL, turns, 0) : first_request (t);
    size_t all_count = 0, seeds = turns ? 0 : t->seed_count;
    const char **all = m && m->has_messages ? record_messages (m, &all_count) : NULL;
    *count = all_count > seeds + 1 ? all_count - seeds - 1 : 0;
    if (*count)
        memmove (all, all + seeds, *count * sizeof (*all));
    return all;
}

bool
player_next_user_text (struct player *p, uint64_t turns, size_t index, struct buf *out)
{
    const struct rec_model *m = p->task ? record_model (p->task, NULL, turns, 0) : NULL;
    size_t count = 0;
    _cleanup_free_ const char **all = m && m->has_messages ? record_messages (m, &count) : NULL;
    struct mur_error *err = NULL;
    bool is_there = index < count && take_text (p->record, all[index], out, &err);
    mur_error_free (err);
    return is_there;
}

static void
note_plain (struct player *p, uint64_t turn, const char *part, const char *recorded,
            const char *now)
{
    const struct difference d = { .turn = turn,
                                  .part = part,
                                  .recorded = recorded,
                                  .recorded_len = recorded ? strlen (recorded) : 0,
                                  .now = now,
                                  .now_len = now ? strlen (now) : 0 };
    struct mur_error *err = NULL;
    play_note (p, &d, &err);
    mur_error_free (err);
}

/* An ending is compared where both came to one by themselves. */
static bool
may_compare_end (const struct player *p)
{
    const struct rec_task *t = p->task;
    bool is_partial = p->modes.model == PLAY_LIVE || p->modes.has_from || p->modes.has_until;
    return t && t->end.is_ended && ! p->is_stopped && ! is_partial &&
           p->modes.model == PLAY_RECORDED;
}

void
player_task_over (struct player *p, const char *ending)
{
    pthread_mutex_lock (&p->lock);
    const struct rec_task *t = p->task;
    if (may_compare_end (p) && ! str_eq (t->end.status, ending))
        note_plain (p, t->end.turns ? t->end.turns - 1 : 0, "ending", t->end.status, ending);
    p->task = NULL;
    pthread_mutex_unlock (&p->lock);
}

/* What no difference was found in was the same as far as it was compared, and no further. */
static enum play_verdict
verdict_without_difference (const struct player *p)
{
    if (p->has_forked)
        return PLAY_FORKED;
    if (! p->record->is_complete)
        return PLAY_INCOMPLETE;
    return p->modes.model == PLAY_LIVE || p->modes.each_turn ? PLAY_ASKED : PLAY_SAME;
}

void
player_finish (struct player *p)
{
    pthread_mutex_lock (&p->lock);
    bool is_partial = p->modes.has_from || p->modes.has_until;
    if (! p->is_stopped && ! is_partial && p->next_task < p->record->task_count) {
        p->task = &p->record->tasks[p->next_task];
        note_plain (p, 0, "task", p->task->id, NULL);
        p->task = NULL;
    }
    if (p->verdict == PLAY_SAME)
        p->verdict = verdict_without_difference (p);
    pthread_mutex_unlock (&p->lock);
}
