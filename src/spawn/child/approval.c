/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/approval.h"

#include "base/alloc.h"
#include "spawn/child/roost_client.h"

#include <string.h>

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
    return true;
}

bool
approval_ask (struct http_client *http, const char *roost_url, const struct secret *credential,
              const char *name, const char *version, struct cancel *cancel, struct approval *out,
              struct mur_error **err)
{
    *out = (struct approval){ 0 };
    _cleanup_json_ json_t *ask = json_object ();
    json_set_string (ask, "name", name);
    json_set_string (ask, "version", version);
    const struct roost_request request = { .url = roost_url,
                                           .path = "/spawn",
                                           .header = "x-murmur-spawn-credential",
                                           .token = credential,
                                           .body = ask,
                                           .cancel = cancel };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    if (answer)
        return take (answer, out, err);
    if (refusal.is_unheard)
        mur_fail (err, E_RUN_007, "mur-roost at %s: %s", roost_url, refusal.text);
    else
        mur_fail (err, E_RUN_007, "%s", refusal.text);
    free (refusal.text);
    return false;
}
