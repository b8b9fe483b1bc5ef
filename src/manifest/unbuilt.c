/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of what is not built yet. See unbuilt.h: building a part removes its row.
 */
#include "manifest/unbuilt.h"

#include <string.h>

/* Values that ask for what is missing, where the key as such is fine. */
static const struct {
    const char *path, *value, *part;
} values[] = {
    { "inference.transport", "process", "driving a harness process" },
};

static bool
refuse (const struct capsule_manifest *m, const char *path, const char *part,
        struct mur_error **err)
{
    capsule_manifest_fail (m, err, E_MAN_003, path, "this version of mur does not have %s yet",
                           part);
    return mur_hint (err, "remove %s, or use a version that has it", path);
}

static bool
judge_value (const struct capsule_manifest *m, size_t row, struct mur_error **err)
{
    static const char any[] = "artifacts[*].";
    if (! str_starts (values[row].path, any)) {
        const char *dot = strchr (values[row].path, '.');
        char block[32] = { 0 };
        memcpy (block, values[row].path, (size_t)(dot - values[row].path));
        const char *text = yaml_text (yaml_get (yaml_get (m->root, block), dot + 1));
        return ! text || strcmp (text_trim (m->arena, text), values[row].value) != 0 ||
               refuse (m, values[row].path, values[row].part, err);
    }
    const char *key = values[row].path + strlen (any);
    const struct yaml_node *list = yaml_get (m->root, "artifacts");
    for (uint32_t i = 0; list && i < list->len; i++)
        if (str_eq (yaml_text (yaml_get (list->items[i], key)), values[row].value))
            return refuse (m, arena_printf (m->arena, "artifacts[%u].%s", i, key), values[row].part,
                           err);
    return true;
}

bool
manifest_refuse_unbuilt (const struct capsule_manifest *m, struct mur_error **err)
{
    for (size_t i = 0; i < ARRAY_LEN (values); i++)
        if (! judge_value (m, i, err))
            return false;
    return true;
}
