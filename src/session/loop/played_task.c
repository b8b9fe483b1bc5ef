/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/played_task.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_model.h"
#include "replay/play/play_task.h"
#include "session/guests/recording.h"
#include "session/model/selection.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

static enum task_origin
origin_of (const char *name)
{
    for (int origin = ORIGIN_USER; origin <= ORIGIN_SYSTEM; origin++)
        if (str_eq (task_origin_name ((enum task_origin)origin), name))
            return (enum task_origin)origin;
    return ORIGIN_USER;
}

enum registry_next
played_next_task (struct session *s, const struct task **task)
{
    struct player *p = s->asked->player;
    const struct rec_task *t = player_next_task (p);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! t)
        return REGISTRY_NOTHING;
    if (! player_task_text (p, t, &text, &err)) {
        diag_error (err);
        return REGISTRY_NOTHING;
    }
    struct task_intake intake = { .id = t->id,
                                  .context_id = t->context_id,
                                  .text = text.data ? text.data : "",
                                  .source = t->source,
                                  .origin = origin_of (t->origin),
                                  .parts_bytes = t->parts_bytes,
                                  .is_trusted = t->is_trusted };
    registry_enqueue (s->registry, &intake);
    return registry_next (s->registry, 0, task);
}

bool
played_load_prior (struct session *s, struct running_task *t, struct mur_error **err)
{
    struct player *p = s->asked->player;
    size_t count;
    _cleanup_free_ const char **shas = player_prior (player_task (p), t->counts.turns, &count);
    for (size_t i = 0; i < count; i++) {
        _cleanup_buf_ struct buf body = { 0 };
        if (! record_body (player_record (p), shas[i], &body, err))
            return false;
        _cleanup_json_ json_t *line = json_loadb (body.data ? body.data : "", body.len, 0, NULL);
        struct message *m = message_from_record (line);
        if (! m)
            return mur_fail (err, E_RPL_004, "blob %s is no message", shas[i]);
        message_list_add (&t->list, m);
    }
    return true;
}

/* What the agent itself switched is in force already: then the value is the same. */
void
played_controls (struct session *s, const struct running_task *t)
{
    static const struct selection_principal controller = { .name = "controller" };
    const struct rec_task *then = player_task (s->asked->player);
    for (size_t i = 0; then && i < then->controls.count; i++) {
        const struct rec_control *c = &then->controls.items[i];
        if (c->turn != t->counts.turns)
            continue;
        _cleanup_json_ json_t *value = json_loads (c->value, JSON_DECODE_ANY, NULL);
        const char *before;
        uint64_t previous;
        if (str_eq (c->name, "inference.driver") && json_is_string (value))
            selection_set_driver (s, &controller, json_string_value (value), &before);
        else if (json_is_integer (value))
            selection_set_max_tokens (s, &controller, (uint64_t)json_integer_value (value),
                                      &previous);
    }
}

void
played_turn (struct session *s, const struct running_task *t)
{
    if (player_forks (s->asked->player, t->counts.turns))
        recording_fork (s, t->counts.turns);
}

void
played_task_over (struct session *s, const struct running_task *t)
{
    player_task_over (s->asked->player, attempt_ending_name (t->end.ending));
}
