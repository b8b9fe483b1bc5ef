/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/player.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/player_internal.h"

#include <string.h>

struct player *
player_new (const struct record *record, const struct play_modes *modes)
{
    struct player *p = x_new0 (struct player);
    p->record = record;
    p->modes = *modes;
    p->arena = arena_new ();
    pthread_mutex_init (&p->lock, NULL);
    return p;
}

static void
difference_free (struct play_difference *d)
{
    if (! d)
        return;
    free (d->pointer);
    free (d->recorded_sha);
    free (d->now_sha);
    free (d->recorded_text);
    free (d->now_text);
    free (d->cause);
    free (d);
}

void
player_free (struct player *p)
{
    if (! p)
        return;
    for (size_t i = 0; i < p->asked_len; i++)
        free (p->asked[i].origin);
    for (size_t i = 0; i < p->turn_count; i++) {
        free (p->turns[i].decision);
        free (p->turns[i].now);
        strv_free (&p->turns[i].calls);
    }
    free (p->asked);
    free (p->turns);
    strv_free (&p->missing);
    strv_free (&p->unpromised);
    difference_free (p->first);
    pthread_mutex_destroy (&p->lock);
    arena_free (p->arena);
    free (p);
}

const struct record *
player_record (const struct player *p)
{
    return p->record;
}

const struct play_modes *
player_modes (const struct player *p)
{
    return &p->modes;
}

bool
player_is_live (const struct player *p)
{
    return p->modes.has_from || p->modes.each_turn || p->modes.model == PLAY_LIVE ||
           p->modes.tools == PLAY_LIVE;
}

bool
player_leaves_away (const struct player *p, const char *tool)
{
    const char *const *name = p->modes.without;
    while (name && *name && ! str_eq (*name, tool))
        name++;
    return name && *name;
}

static const char *
keep (struct player *p, const char *text)
{
    return text ? arena_strdup (p->arena, text) : NULL;
}

void
player_set_facts (struct player *p, const struct play_facts *now)
{
    struct play_facts *f = arena_new0 (p->arena, struct play_facts);
    struct rec_artifact *artifacts =
        arena_new_array (p->arena, struct rec_artifact, now->artifact_count + 1);
    for (size_t i = 0; i < now->artifact_count; i++)
        artifacts[i] = (struct rec_artifact){ keep (p, now->artifacts[i].name),
                                              keep (p, now->artifacts[i].version),
                                              keep (p, now->artifacts[i].role),
                                              keep (p, now->artifacts[i].sha256) };
    *f = (struct play_facts){ keep (p, now->mur_version),
                              keep (p, now->arch),
                              keep (p, now->manifest_sha),
                              keep (p, now->manifest_text),
                              keep (p, now->prompt_sha),
                              keep (p, now->lock_sha),
                              artifacts,
                              now->artifact_count };
    p->facts = f;
}

/* --- turns of the report --- */

struct play_turn *
play_turn (struct player *p, uint64_t turn)
{
    size_t task = p->task ? p->task->ordinal : 0;
    for (size_t i = p->turn_count; i > 0; i--)
        if (p->turns[i - 1].task == task && p->turns[i - 1].turn == turn)
            return &p->turns[i - 1];
    x_grow (p->turns, p->turn_count, p->turn_cap);
    p->turns[p->turn_count] = (struct play_turn){ .task = task, .turn = turn, .is_same = true };
    return &p->turns[p->turn_count++];
}

const struct play_turn *
player_turns (const struct player *p, size_t *count)
{
    *count = p->turn_count;
    return p->turns;
}

const struct rec_task *
player_task (const struct player *p)
{
    return p->task;
}

/* --- what came of it --- */

enum play_verdict
player_verdict (const struct player *p)
{
    return p->verdict;
}

const char *
play_verdict_name (enum play_verdict verdict)
{
    static const char *const names[] = { [PLAY_SAME] = "same",
                                         [PLAY_DIVERGED] = "diverged",
                                         [PLAY_INCOMPLETE] = "incomplete",
                                         [PLAY_FORKED] = "forked",
                                         [PLAY_ASKED] = "live" };
    return names[verdict];
}

const struct play_difference *
player_difference (const struct player *p)
{
    return p->first;
}

struct play_counts
player_counts (const struct player *p)
{
    return p->counts;
}

void
player_note_network (struct player *p)
{
    pthread_mutex_lock (&p->lock);
    p->counts.network_attempts++;
    pthread_mutex_unlock (&p->lock);
}

const struct strv *
player_unpromised (const struct player *p)
{
    return &p->unpromised;
}

const struct strv *
player_missing (const struct player *p)
{
    return &p->missing;
}
