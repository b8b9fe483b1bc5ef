/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of what is not built yet. See unbuilt.h: building a part removes its row.
 */
#include "manifest/unbuilt.h"

#include <string.h>

struct unbuilt {
    const char *path;
    const char *part; /* what is missing, for the message */
};

static const struct unbuilt parts[] = {
    { "observability.otel_endpoint", "export of spans" },
};

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
is_declared (const struct yaml_node *root, const char *path)
{
    const struct yaml_node *n = root;
    char key[64];
    while (n && *path) {
        size_t len = strcspn (path, ".");
        memcpy (key, path, len);
        key[len] = '\0';
        n = yaml_get (n, key);
        path += len;
        path += *path == '.';
    }
    /* A key with nothing after it, an empty map and an empty list ask for nothing. */
    return n && n->kind != YAML_NULL && (yaml_is_scalar (n) || n->len);
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
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        if (is_declared (m->root, parts[i].path))
            return refuse (m, parts[i].path, parts[i].part, err);
    return true;
}
