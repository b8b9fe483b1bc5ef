/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/config_write.h"
#include "manifest/text/suggest.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"

#include "manifest/settings/config_internal.h"

#include "base/alloc.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Every key that survives a rewrite; credentials are copied entry by entry. */
static const struct {
    const char *block; /* NULL: a key of its own */
    const char *key;
    bool is_settable;
} known_keys[] = {
    { "registry", "index_url", true }, { "registry", "sources", false },
    { "registry", "default", false },  { "inference", "provider", true },
    { "inference", "model", true },    { "inference", "api_key", true },
    { "inference", "endpoint", true }, { "beta", "enabled", false },
    { NULL, "containment", false },    { "spend", "machine_tokens_per_day", false },
    { "resources", "cgroup", false },  { "observability", "locked", false },
};

#define SETTABLE                                                                                   \
    "registry.index_url, inference.provider, inference.model, inference.api_key, "                 \
    "inference.endpoint, credentials.<NAME> (with -g)"

/* One change: a settable key, a credential, or the list of enabled features. */
struct change {
    const char *block;
    const char *key;
    const char *value;          /* NULL: the key is taken out, or beta is changed */
    const struct strv *enabled; /* beta.enabled, or NULL */
};

static bool
is_credential_name (const char *name)
{
    if (! *name || (*name >= '0' && *name <= '9'))
        return false;
    return name[strspn (name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

static char *
dotted_name (size_t i)
{
    return known_keys[i].block ? x_asprintf ("%s.%s", known_keys[i].block, known_keys[i].key)
                               : x_strdup (known_keys[i].key);
}

/* NULL, or the key that was probably meant: near in letters, or the last word of it alone. Owned.
 */
static char *
near_key (const char *typed)
{
    size_t least = strlen (typed) <= 7 ? 3 : 4;
    char *near = NULL;
    for (size_t i = 0; i < ARRAY_LEN (known_keys); i++) {
        _cleanup_free_ char *name = dotted_name (i);
        size_t distance =
            strcasecmp (typed, known_keys[i].key) == 0 ? 0 : schema_distance (typed, name);
        if (distance >= least)
            continue;
        least = distance;
        free (near);
        near = steal_ptr (&name);
    }
    return near;
}

static bool
fail_unknown (const char *dotted, struct mur_error **err)
{
    _cleanup_free_ char *near = near_key (dotted);
    mur_fail (err, E_CFG_002, "there is no configuration key \"%s\"", dotted);
    if (near)
        return mur_hint (err, "did you mean %s? keys: " SETTABLE, near);
    return mur_hint (err, "keys: " SETTABLE);
}

bool
config_key_exists (const char *dotted, struct mur_error **err)
{
    if (str_starts (dotted, "credentials.") &&
        is_credential_name (dotted + strlen ("credentials.")))
        return true;
    for (size_t i = 0; i < ARRAY_LEN (known_keys); i++) {
        _cleanup_free_ char *name = dotted_name (i);
        if (str_eq (name, dotted))
            return true;
    }
    return fail_unknown (dotted, err);
}

static bool
find_key (const char *dotted, bool is_global, const char *value, struct change *change,
          struct mur_error **err)
{
    if (str_starts (dotted, "credentials.")) {
        const char *name = dotted + strlen ("credentials.");
        if (! is_credential_name (name)) {
            mur_fail (err, E_CFG_002, "\"%s\" is no name of a credential", name);
            return mur_hint (err, "capital letters, digits and underscores, not beginning with a "
                                  "digit: credentials.MY_API_KEY");
        }
        if (! is_global) {
            mur_fail (err, E_CFG_002, "%s is never kept in a project", dotted);
            return mur_hint (err, "add -g to write it to ~/.murmur/config.yaml");
        }
        *change = (struct change){ "credentials", name, value, NULL };
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN (known_keys); i++) {
        _cleanup_free_ char *name = dotted_name (i);
        if (! str_eq (name, dotted))
            continue;
        if (! known_keys[i].is_settable) {
            mur_fail (err, E_CFG_002, "%s is not set by this command", dotted);
            return mur_hint (
                err, "write it into the file, `mur config path`; this command sets " SETTABLE);
        }
        *change = (struct change){ known_keys[i].block, known_keys[i].key, value, NULL };
        return true;
    }
    return fail_unknown (dotted, err);
}

/* --- writing one file --- */

static bool
is_changed (const struct change *change, const char *block, const char *key)
{
    return str_eq (change->block, block) && str_eq (change->key, key);
}

static void
put_value (struct yaml_writer *w, const char *key, const struct yaml_node *old,
           const struct change *change, bool is_this)
{
    if (! is_this) {
        if (old && old->kind != YAML_NULL)
            yaml_add_node (w, key, old);
        return;
    }
    if (change->value)
        yaml_add_text (w, key, change->value);
    if (change->value || ! change->enabled)
        return;
    yaml_open_list (w, key);
    for (size_t i = 0; i < change->enabled->len; i++)
        yaml_add_text (w, NULL, change->enabled->items[i]);
    yaml_close (w);
}

static void
put_block (struct yaml_writer *w, const struct yaml_node *root, const char *block,
           const struct change *change)
{
    const struct yaml_node *old = yaml_get (root, block);
    bool is_there = (old && old->kind == YAML_MAP && old->len) || str_eq (change->block, block);
    if (! is_there)
        return;
    yaml_open_map (w, block);
    for (size_t i = 0; i < ARRAY_LEN (known_keys); i++)
        if (str_eq (known_keys[i].block, block))
            put_value (w, known_keys[i].key, yaml_get (old, known_keys[i].key), change,
                       is_changed (change, block, known_keys[i].key));
    yaml_close (w);
}

static void
put_credentials (struct yaml_writer *w, const struct yaml_node *root, const struct change *change)
{
    const struct yaml_node *old = yaml_get (root, "credentials");
    bool is_ours = str_eq (change->block, "credentials");
    bool is_map = old && old->kind == YAML_MAP;
    if (! is_ours && ! (is_map && old->len))
        return;
    yaml_open_map (w, "credentials");
    bool is_written = false;
    for (size_t i = 0; is_map && i < old->len; i++) {
        const char *name = yaml_text (old->pairs[i].key);
        bool is_this = is_ours && str_eq (name, change->key);
        if (name)
            put_value (w, name, old->pairs[i].value, change, is_this);
        is_written |= is_this;
    }
    if (is_ours && ! is_written && change->value)
        yaml_add_text (w, change->key, change->value);
    yaml_close (w);
}

static char *
rewritten (const struct yaml_node *root, const struct change *change)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    put_block (&w, root, "registry", change);
    put_block (&w, root, "inference", change);
    put_credentials (&w, root, change);
    put_block (&w, root, "beta", change);
    put_value (&w, "containment", yaml_get (root, "containment"), change, false);
    put_block (&w, root, "spend", change);
    put_block (&w, root, "resources", change);
    put_block (&w, root, "observability", change);
    put_value (&w, "unconfined", yaml_get (root, "unconfined"), change, false);
    return yaml_writer_finish (&w);
}

/* The directory a file stands in, created when missing. Returns an owned descriptor or -1. */
static int
open_place (const char *path, bool is_global, struct mur_error **err)
{
    if (is_global)
        return home_open_dir ("", err);
    const char *slash = strrchr (path, '/');
    _cleanup_free_ char *dir = x_strndup (path, (size_t)(slash - path));
    int fd = -1;
    if (mkdir (dir, 0777) == 0 || errno == EEXIST)
        fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        mur_fail_errno (err, E_IO_003, "cannot use %s", dir);
    return fd;
}

static mode_t
ordinary_mode (void)
{
    mode_t mask = umask (0);
    umask (mask);
    return 0666 & ~mask;
}

/* Reads the file, applies one change and puts the result in its place, under the directory's lock.
 */
static bool
rewrite (const char *path, bool is_global, const struct change *change, struct mur_error **err)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_close_ int dir = open_place (path, is_global, err);
    if (dir < 0)
        return false;
    (void)flock (dir, LOCK_EX);
    const struct yaml_node *root = config_file_tree (arena, path, err);
    if (! root)
        return false;
    char *text = rewritten (root, change);
    bool is_ok = fs_replace_at (dir, "config.yaml", text, strlen (text),
                                is_global ? 0600 : ordinary_mode (), true, err);
    secret_wipe (text, strlen (text));
    free (text);
    return is_ok || mur_context (err, "cannot write %s", path);
}

bool
config_set (const char *key, const char *value, bool is_global, char **written,
            struct mur_error **err)
{
    struct change change;
    if (! find_key (key, is_global, value, &change, err))
        return false;
    _cleanup_free_ char *path =
        is_global ? home_path_below ("config.yaml", err) : config_project_path (err);
    if (! path || ! rewrite (path, is_global, &change, err))
        return false;
    *written = is_global ? x_strdup ("~/.murmur/config.yaml") : steal_ptr (&path);
    return true;
}

bool
config_set_beta (const char *feature, bool enabled, bool *changed, struct mur_error **err)
{
    _cleanup_config_ struct config *c = config_load_global (err);
    if (! c)
        return false;
    *changed = strv_contains (&c->beta, feature) != enabled;
    if (! *changed)
        return true;
    _cleanup_strv_ struct strv now = { 0 };
    for (size_t i = 0; i < c->beta.len; i++)
        if (! str_eq (c->beta.items[i], feature))
            strv_push (&now, c->beta.items[i]);
    if (enabled)
        strv_push (&now, feature);
    struct change change = { "beta", "enabled", NULL, &now };
    return rewrite (c->global_path, true, &change, err);
}
