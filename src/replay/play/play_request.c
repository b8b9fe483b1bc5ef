/* SPDX-License-Identifier: Apache-2.0
 *
 * A request of now against a request of then: system, tools, then message by message, in the order
 * the bytes go out.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/play_model.h"
#include "replay/play/player_internal.h"

#include <string.h>

/* The recorded text of a digest; "" when its body cannot be had. */
static void
fetch (const struct player *p, const char *sha, struct buf *out)
{
    struct mur_error *err = NULL;
    if (! record_body (p->record, sha, out, &err))
        buf_truncate (out, 0);
    mur_error_free (err);
}

static bool
compare_text (struct player *p, uint64_t turn, const char *part, const char *recorded_sha,
              const char *now_sha, const char *now, struct mur_error **err)
{
    if (! recorded_sha || strcmp (recorded_sha, now_sha) == 0)
        return true;
    _cleanup_buf_ struct buf recorded = { 0 };
    fetch (p, recorded_sha, &recorded);
    const struct difference d = { .turn = turn,
                                  .part = part,
                                  .recorded = recorded.data ? recorded.data : "",
                                  .recorded_len = recorded.len,
                                  .now = now,
                                  .now_len = strlen (now),
                                  .is_json = strcmp (part, "tools") == 0 };
    return play_note (p, &d, err);
}

static bool
compare_message (struct player *p, const struct play_request *now, size_t i,
                 const char *recorded_sha, struct mur_error **err)
{
    const char *now_sha = i < now->message_count ? now->message_shas[i] : NULL;
    if (recorded_sha && now_sha && strcmp (recorded_sha, now_sha) == 0)
        return true;
    _cleanup_buf_ struct buf recorded = { 0 };
    if (recorded_sha)
        fetch (p, recorded_sha, &recorded);
    const struct difference d = {
        .turn = now->turn,
        .part = "message",
        .message = i,
        .recorded = recorded_sha ? recorded.data ? recorded.data : "" : NULL,
        .recorded_len = recorded.len,
        .now = now_sha ? now->messages[i] : NULL,
        .now_len = now_sha ? now->message_lens[i] : 0,
        .is_json = true,
    };
    return play_note (p, &d, err);
}

static bool
compare_messages (struct player *p, const struct play_request *now, const struct rec_model *m,
                  struct mur_error **err)
{
    size_t count;
    _cleanup_free_ const char **recorded = record_messages (m, &count);
    uint64_t before = p->counts.differences;
    for (size_t i = 0; i < count || i < now->message_count; i++) {
        if (! compare_message (p, now, i, i < count ? recorded[i] : NULL, err))
            return false;
        if (p->counts.differences != before)
            return true; /* one a request: what follows it follows from it */
    }
    return true;
}

/* What a request says beside its texts, as one object; what the record does not know is left out of
 * both. Owned. */
static char *
rest_of (const struct rec_model *m, const char *model, uint64_t max_tokens, const char *config)
{
    _cleanup_json_ json_t *rest = json_object ();
    bool has_secret = m->driver_config && strstr (m->driver_config, "[redacted]");
    if (m->driver_config && ! has_secret)
        json_object_set_new (rest, "driver_config", json_loads (config, JSON_DECODE_ANY, NULL));
    if (m->max_tokens)
        json_set_u64 (rest, "max_tokens", max_tokens);
    json_set_string (rest, "model", model);
    return json_text (rest, JSON_TEXT_SORTED);
}

static bool
compare_rest (struct player *p, const struct play_request *now, const struct rec_model *m,
              struct mur_error **err)
{
    const char *model = m->model ? m->model : p->record->model;
    _cleanup_free_ char *then =
        rest_of (m, model, m->max_tokens, m->driver_config ? m->driver_config : "null");
    _cleanup_free_ char *text = rest_of (m, now->model, now->max_tokens, now->driver_config);
    if (strcmp (then, text) == 0)
        return true;
    const struct difference d = { .turn = now->turn,
                                  .part = "request",
                                  .recorded = then,
                                  .recorded_len = strlen (then),
                                  .now = text,
                                  .now_len = strlen (text),
                                  .is_json = true };
    return play_note (p, &d, err);
}

bool
play_compare (struct player *p, const struct play_request *now, const struct rec_model *m,
              struct mur_error **err)
{
    uint64_t before = p->counts.differences;
    if (! compare_text (p, now->turn, "system", m->system_sha, now->system_sha, now->system, err))
        return false;
    if (p->counts.differences == before &&
        ! compare_text (p, now->turn, "tools", m->tools_sha, now->tools_sha, now->tools, err))
        return false;
    if (p->counts.differences == before && m->has_messages && ! compare_messages (p, now, m, err))
        return false;
    return p->counts.differences != before || compare_rest (p, now, m, err);
}
