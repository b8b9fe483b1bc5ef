/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/config_entries.h"
#include "manifest/settings/config_internal.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "home/paths.h"

#include <string.h>

static bool
is_secret (const char *key)
{
    return str_starts (key, "credentials.") || str_eq (key, "inference.api_key");
}

static void
tell (config_entry_fn *each, void *ctx, const char *key, const struct yaml_node *value,
      const char *file)
{
    _cleanup_buf_ struct buf json = { 0 };
    const char *text = yaml_text (value);
    if (value->kind == YAML_NULL)
        return;
    if (! text && yaml_put_json (&json, value, E_IO_003, NULL))
        text = json.data;
    each (ctx, &(struct config_entry){ key, is_secret (key) ? NULL : text, file });
}

static void
tell_file (config_entry_fn *each, void *ctx, const struct yaml_node *root, const char *file)
{
    for (size_t i = 0; root->kind == YAML_MAP && i < root->len; i++) {
        const char *block = yaml_text (root->pairs[i].key);
        const struct yaml_node *value = root->pairs[i].value;
        if (block && value->kind != YAML_MAP)
            tell (each, ctx, block, value, file);
        for (size_t k = 0; block && value->kind == YAML_MAP && k < value->len; k++) {
            const char *name = yaml_text (value->pairs[k].key);
            _cleanup_free_ char *key = x_asprintf ("%s.%s", block, name ? name : "?");
            tell (each, ctx, key, value->pairs[k].value, file);
        }
    }
}

bool
config_entries (config_entry_fn *each, void *ctx, struct mur_error **err)
{
    _cleanup_free_ char *told = NULL;
    for (int is_global = 0; is_global < 2; is_global++) {
        _cleanup_arena_ struct arena *arena = arena_new ();
        _cleanup_free_ char *path =
            is_global ? home_path_below ("config.yaml", err) : config_project_path (err);
        if (path && told && str_eq (path, told)) /* the home's parent is where one stands */
            return true;
        const struct yaml_node *root = path ? config_file_tree (arena, path, err) : NULL;
        if (! root)
            return false;
        tell_file (each, ctx, root, path);
        told = steal_ptr (&path);
    }
    return true;
}
