/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences: the first with everything a person needs to see it, the rest counted.
 */
#include "base/alloc.h"
#include "base/digest.h"
#include "replay/play/differ.h"
#include "replay/play/player_internal.h"

static char *
digest_of (const char *text, size_t len)
{
    char sha[SHA256_HEX_LEN + 1];
    if (! text)
        return NULL;
    sha256_hex (text, len, sha);
    return x_strdup (sha);
}

static struct play_difference *
difference_new (const struct player *p, const struct difference *d)
{
    struct play_difference *out = x_new0 (struct play_difference);
    bool has_both = d->recorded && d->now;
    *out = (struct play_difference){ .task = p->task ? p->task->ordinal : 0,
                                     .turn = d->turn,
                                     .has_call = d->has_call,
                                     .call = d->call,
                                     .part = d->part,
                                     .message = d->message };
    if (has_both)
        out->offset = differ_offset (d->recorded, d->recorded_len, d->now, d->now_len);
    out->pointer = has_both && d->is_json
                       ? differ_pointer_text (d->recorded, d->recorded_len, d->now, d->now_len)
                       : x_strdup ("");
    out->recorded_sha = digest_of (d->recorded, d->recorded_len);
    out->now_sha = digest_of (d->now, d->now_len);
    if (d->recorded)
        out->recorded_text = differ_excerpt (d->recorded, d->recorded_len, out->offset);
    if (d->now)
        out->now_text = differ_excerpt (d->now, d->now_len, out->offset);
    out->cause = play_cause (p, d, out->pointer);
    return out;
}

static void
place_of (const struct player *p, const struct difference *d, char *out, size_t size)
{
    int len = snprintf (out, size, "task %zu, turn %llu", p->task ? p->task->ordinal : 0,
                        (unsigned long long)d->turn);
    if (d->has_call)
        snprintf (out + len, size - (size_t)len, ", call %zu", d->call);
}

bool
play_note (struct player *p, const struct difference *d, struct mur_error **err)
{
    char place[96];
    struct play_turn *turn = play_turn (p, d->turn);
    if (turn)
        turn->is_same = false;
    p->verdict = PLAY_DIVERGED;
    p->counts.differences++;
    if (! p->first)
        p->first = difference_new (p, d);
    if (p->modes.goes_on)
        return true;
    p->is_stopped = true;
    place_of (p, d, place, sizeof (place));
    return mur_fail (err, E_RPL_002, "%s: the %s differs from the record", place, p->first->part);
}

/* A session that was killed, or whose trace was torn, ends here and says so. */
static bool
is_past_the_end (const struct player *p)
{
    return ! p->record->is_complete && (! p->task || ! p->task->end.is_ended);
}

bool
play_note_missing (struct player *p, const struct difference *d, const char *what,
                   struct mur_error **err)
{
    char place[96];
    place_of (p, d, place, sizeof (place));
    strv_printf (&p->missing, "%s: %s", place, what);
    p->is_stopped = true;
    if (is_past_the_end (p) && p->verdict == PLAY_SAME) {
        p->verdict = PLAY_INCOMPLETE;
        mur_fail (err, E_RPL_003, "the record ends at %s: %s", place, what);
        return false;
    }
    struct mur_error *caught = NULL;
    play_note (p, d, &caught);
    mur_error_free (caught);
    return mur_fail (err, E_RPL_003, "%s: the record holds %s", place, what);
}
