/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request to the referee says: its body, who holds its credential, the capsule it names.
 */
#include "artifact/store/store.h"
#include "base/alloc.h"
#include "roost/referee_internal.h"

#include <string.h>

json_t *
request_body (const char *body, size_t len, struct verdict *refusal)
{
    json_t *o = json_loadb (body, len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object (o))
        return o;
    json_decref (o);
    *refusal = verdict_error (400, "the body is not a JSON object, or names a key twice");
    return NULL;
}

const char *
request_text (const json_t *o, const char *key, struct verdict *refusal)
{
    const char *value = json_get_string (o, key);
    if (! value)
        *refusal = verdict_error (400, "the body has no string \"%s\"", key);
    return value;
}

struct job *
referee_holder (struct referee *r, const char *credential)
{
    _cleanup_json_ json_t *payload =
        credential ? token_verify (&token_spawn_credential, r->key, credential, NULL) : NULL;
    const char *session_id = json_get_string (payload, "sid");
    struct job *j = session_id ? job_table_find (&r->jobs, session_id) : NULL;
    return j && j->state == JOB_RUNNING ? j : NULL;
}

bool
referee_resolve (const struct referee *r, const char *name, const char *version,
                 struct resolved_capsule *out, struct mur_error **err)
{
    const struct store store = { STORE_GLOBAL, (char *)(uintptr_t)r->options.registry_path };
    _cleanup_payload_ struct store_payload payload = { 0 };
    enum store_found found = store_find (&store, name, version, NULL, &payload, err);
    if (found == STORE_NOT_FOUND)
        return mur_fail (err, E_REG_001, "%s@%s is not in the registry %s", name, version,
                         r->options.registry_path);
    if (found != STORE_FOUND)
        return false;
    _cleanup_package_ struct package *p = store_read (&payload, name, version, err);
    if (! p || ! package_open_zip (p, err))
        return false;
    memcpy (out->sha256, p->sha256, sizeof out->sha256);
    out->manifest =
        capsule_manifest_parse (p->manifest_text, p->manifest_len, name, MANIFEST_SECRETLESS, err);
    return out->manifest != NULL;
}
