/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/approval.h"

#include "base/alloc.h"
#include "spawn/child/roost_client.h"

#include <string.h>

#define REPEATS   5
#define REPEAT_MS 1000

void
approval_clear (struct approval *a)
{
    secret_free (a->token);
    *a = (struct approval){ 0 };
}

static bool
take (const json_t *answer, struct approval *out, struct mur_error **err)
{
    const char *token = json_get_string (answer, "approval");
    if (! token || ! *token)
        return mur_fail (err, E_RUN_007, "the answer of mur-roost has no field approval");
    const char *sha256 = json_get_string (answer, "sha256");
    *out = (struct approval){ .token = secret_new (token, strlen (token)) };
    if (sha256 && strlen (sha256) < sizeof out->sha256)
        memcpy (out->sha256, sha256, strlen (sha256) + 1);
    json_get_u64 (answer, "expires_at_ms", &out->expires_ms);
    out->is_launched = json_is_true (json_object_get (answer, "launched"));
    json_get_u64 (answer, "wait_secs", &out->wait_secs);
    return true;
}

static void
say_where (json_t *ask, const struct approval_elsewhere *e)
{
    json_set_string (ask, "delegation_id", e->delegation_id);
    json_set_string (ask, "context_id", e->context_id);
    json_set_u64 (ask, "bound_secs", e->bound_secs);
    json_set_u64 (ask, "deadline_ms", e->deadline_ms);
}

bool
approval_ask (struct http_client *http, const char *roost_url, const struct secret *credential,
              const char *name, const char *version, const struct approval_elsewhere *elsewhere,
              struct cancel *cancel, struct approval *out, struct mur_error **err)
{
    *out = (struct approval){ 0 };
    _cleanup_json_ json_t *ask = json_object ();
    json_set_string (ask, "name", name);
    json_set_string (ask, "version", version);
    if (elsewhere)
        say_where (ask, elsewhere);
    const struct roost_request request = { .url = roost_url,
                                           .path = "/spawn",
                                           .header = "x-murmur-spawn-credential",
                                           .token = credential,
                                           .body = ask,
                                           .cancel = cancel };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    for (unsigned i = 0; elsewhere && ! answer && refusal.is_unheard && i < REPEATS; i++) {
        if (cancel ? ! cancel_sleep (cancel, REPEAT_MS) : usleep (REPEAT_MS * 1000))
            break;
        free (refusal.text);
        refusal = (struct roost_refusal){ 0 };
        answer = roost_ask (http, &request, &refusal);
    }
    if (answer)
        return take (answer, out, err);
    if (refusal.is_unheard)
        mur_fail (err, E_RUN_007, "mur-roost at %s: %s", roost_url, refusal.text);
    else
        mur_fail (err, E_RUN_007, "%s", refusal.text);
    free (refusal.text);
    return false;
}
