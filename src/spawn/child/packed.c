/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/packed.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

void
packed_clear (struct packed *p)
{
    strv_free (&p->env_allow);
    strv_free (&p->spawn_allow);
}

/* A list that is not there is an empty one; anything that is no list of texts is refused. */
static bool
take_texts (const struct yaml_node *grants, const char *block, struct strv *out,
            struct mur_error **err)
{
    const struct yaml_node *list = yaml_get (yaml_get (grants, block), "allow");
    if (! list || list->kind == YAML_NULL)
        return true;
    for (size_t i = 0; list->kind == YAML_LIST && i < list->len; i++) {
        const char *text = yaml_text (list->items[i]);
        if (! text)
            return mur_fail (err, E_MAN_003, "capabilities.%s.allow[%zu] is no text", block, i);
        if (! strv_contains (out, text))
            strv_push (out, text);
    }
    return list->kind == YAML_LIST ||
           mur_fail (err, E_MAN_003, "capabilities.%s.allow is no list", block);
}

bool
packed_read (const struct stores *stores, const char *name, const char *version, struct packed *out,
             struct mur_error **err)
{
    *out = (struct packed){ .workdir_max_bytes = PACKED_WORKDIR_MAX_BYTES };
    _cleanup_payload_ struct store_payload payload = { 0 };
    enum store_found found = stores_find (stores, name, version, NULL, &payload, err);
    if (found != STORE_FOUND)
        return found == STORE_FAILED ? false : mur_fail (err, E_REG_001, "it is not installed");
    _cleanup_package_ struct package *package = package_from_file (payload.path, err);
    if (! package || ! package_open_zip (package, err))
        return false;
    const struct yaml_node *grants = yaml_get (package->manifest->root, "capabilities");
    if (! take_texts (grants, "env", &out->env_allow, err) ||
        ! take_texts (grants, "spawn", &out->spawn_allow, err))
        return false;
    const struct yaml_node *ceiling =
        yaml_get (yaml_get (grants, "resources"), "workdir_max_bytes");
    if (ceiling)
        yaml_as_u64 (ceiling, &out->workdir_max_bytes);
    return true;
}
