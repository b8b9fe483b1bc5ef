/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/spawner.h"

#include "base/alloc.h"
#include "base/json.h"

#include <string.h>

#define CONSEQUENCE "a child that cannot report its end may not run"

static bool
take (const json_t *o, const char *key, char **out)
{
    const char *text = json_get_string (o, key);
    *out = text && *text ? x_strdup (text) : NULL;
    return *out != NULL;
}

bool
spawner_parse (const char *text, struct spawner *out, struct mur_error **err)
{
    static const char *const keys[] = { "session_id", "context_id", "delegation_id", "url" };
    *out = (struct spawner){ 0 };
    char **const fields[] = { &out->session_id, &out->context_id, &out->delegation_id, &out->url };
    if (! text || ! text[strspn (text, " \t\r\n")])
        return true;
    /* A parser's own message would quote the text. */
    _cleanup_json_ json_t *o = json_loads (text, 0, NULL);
    if (! json_is_object (o))
        return mur_fail (err, E_RUN_020, "MURMUR_SPAWNER is not a JSON object; " CONSEQUENCE);
    if (json_object_get (o, "approvals"))
        out->approvals = json_text (json_object_get (o, "approvals"), JSON_TEXT_ORDERED);
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) {
        bool is_optional = fields[i] == &out->url && ! json_object_get (o, keys[i]);
        if (take (o, keys[i], fields[i]) || is_optional)
            continue;
        spawner_clear (out);
        return mur_fail (err, E_RUN_020,
                         "MURMUR_SPAWNER: %s is missing, empty or no string; " CONSEQUENCE,
                         keys[i]);
    }
    return true;
}

void
spawner_clear (struct spawner *s)
{
    free (s->session_id);
    free (s->context_id);
    free (s->delegation_id);
    free (s->url);
    free (s->approvals);
    *s = (struct spawner){ 0 };
}
