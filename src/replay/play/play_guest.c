/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_guest.h"

#include "replay/play/player_internal.h"

#include <string.h>

bool
player_guest_is_played (const struct player *p, bool is_driver, bool is_hook)
{
    if (is_driver)
        return p->modes.model != PLAY_LIVE && ! p->has_forked && ! p->modes.each_turn;
    return ! p->has_forked && (is_hook || p->modes.tools != PLAY_LIVE);
}

bool
player_compares_files (const struct player *p)
{
    return p->modes.tools == PLAY_RERUN && ! p->has_forked;
}

bool
player_http (struct player *p, const char *recorded, size_t recorded_len, const char *now,
             size_t now_len)
{
    if (recorded && recorded_len == now_len && (! now_len || memcmp (recorded, now, now_len) == 0))
        return true;
    pthread_mutex_lock (&p->lock);
    const struct difference d = { .turn = p->turn,
                                  .has_call = true,
                                  .call = p->call_number,
                                  .part = "http",
                                  .recorded = recorded,
                                  .recorded_len = recorded_len,
                                  .now = now,
                                  .now_len = now_len };
    struct mur_error *err = NULL;
    bool goes_on = play_note (p, &d, &err);
    mur_error_free (err);
    pthread_mutex_unlock (&p->lock);
    return goes_on && recorded;
}

void
player_files (struct player *p, uint64_t turn, size_t call, const char *path)
{
    static const char what[] = "as it was";
    pthread_mutex_lock (&p->lock);
    const struct difference d = { .turn = turn,
                                  .has_call = true,
                                  .call = call,
                                  .part = "files",
                                  .recorded = what,
                                  .recorded_len = strlen (what),
                                  .now = path,
                                  .now_len = strlen (path) };
    struct mur_error *err = NULL;
    play_note (p, &d, &err);
    mur_error_free (err);
    pthread_mutex_unlock (&p->lock);
}

void
player_no_reply (struct player *p, const char *prompt, struct mur_error **err)
{
    pthread_mutex_lock (&p->lock);
    p->is_stopped = true;
    p->unanswered = p->unanswered ? p->unanswered : arena_strdup (p->arena, prompt);
    strv_printf (&p->missing, "turn %llu: a reply to \"%s\"", (unsigned long long)p->turn, prompt);
    if (p->verdict == PLAY_SAME)
        p->verdict = PLAY_INCOMPLETE;
    pthread_mutex_unlock (&p->lock);
    player_fail_unanswered (p, err);
}

bool
player_fail_unanswered (const struct player *p, struct mur_error **err)
{
    if (! p->unanswered)
        return true;
    mur_fail (err, E_RPL_006, "the record holds no reply to what was asked at turn %llu: %s",
              (unsigned long long)p->turn, p->unanswered);
    return mur_hint (err, "run the replay in a terminal to answer it");
}
