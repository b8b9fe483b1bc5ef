/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/environment.h"

#include "base/alloc.h"
#include "manifest/text/grammar.h"

#include <stdint.h>
#include <string.h>

static const char *const host_names[] = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "CARGO_HOME", "RUSTUP_HOME", "TERM",
};

/* Baseline names are never taken for these: they belong to the process that launched the runtime.
 */
static const char *const withheld[] = {
    "MURMUR_FORMATION_ID",    "MURMUR_FORMATION_CHANNEL", "MURMUR_FORMATION_LIFELINE",
    "MURMUR_FORMATION_PEERS", "MURMUR_SPAWNER_LIFELINE",
};

static size_t
name_len (const char *entry)
{
    return strcspn (entry, "=");
}

static size_t
find (const struct strv *env, const char *name, size_t len)
{
    for (size_t i = 0; i < env->len; i++)
        if (name_len (env->items[i]) == len && memcmp (env->items[i], name, len) == 0)
            return i;
    return SIZE_MAX;
}

static void
drop (struct strv *env, size_t i)
{
    free (env->items[i]);
    env->items[i] = env->items[--env->len];
    env->items[env->len] = NULL;
}

static void
set_entry (struct strv *env, const char *entry)
{
    size_t at = find (env, entry, name_len (entry));
    if (at != SIZE_MAX)
        drop (env, at);
    strv_push (env, entry);
}

static void
set (struct strv *env, const char *name, const char *value)
{
    size_t at = find (env, name, strlen (name));
    if (at != SIZE_MAX)
        drop (env, at);
    if (value)
        strv_printf (env, "%s=%s", name, value);
}

static void
copy_from_host (struct strv *env, char *const *host, const char *name)
{
    size_t len = strlen (name);
    for (size_t i = 0; host && host[i]; i++)
        if (name_len (host[i]) == len && host[i][len] == '=' && memcmp (host[i], name, len) == 0) {
            set_entry (env, host[i]);
            return;
        }
}

/* No manifest can exempt a name from the backstop. */
static bool
is_stripped (const struct environment_spec *spec, const char *name)
{
    size_t count = 0;
    while (spec->strip && spec->strip[count])
        count++;
    bool is_builtin;
    return env_stripped_by (name, spec->strip, count, &is_builtin) != NULL;
}

void
command_environment_build (const struct environment_spec *spec, struct strv *env)
{
    for (size_t i = 0; i < ARRAY_LEN (host_names); i++)
        copy_from_host (env, spec->host, host_names[i]);
    if (spec->path)
        set (env, "PATH", spec->path);
    for (size_t i = 0; spec->recipes && spec->recipes[i]; i++)
        set_entry (env, spec->recipes[i]);
    for (size_t i = 0; spec->overrides && spec->overrides[i]; i++)
        set_entry (env, spec->overrides[i]);
    for (size_t i = 0; spec->baseline && spec->baseline[i]; i++) {
        bool is_withheld = false;
        for (size_t w = 0; w < ARRAY_LEN (withheld); w++)
            is_withheld |= str_eq (withheld[w], spec->baseline[i]);
        if (! is_withheld)
            copy_from_host (env, spec->host, spec->baseline[i]);
    }
    for (size_t i = 0; i < env->len;) {
        _cleanup_free_ char *name = x_strndup (env->items[i], name_len (env->items[i]));
        if (is_stripped (spec, name))
            drop (env, i);
        else
            i++;
    }
    set (env, "HOME", spec->home_dir);
    set (env, "USERPROFILE", spec->home_dir);
    set (env, "MURMUR_RUNTIME_DIR", spec->runtime_dir);
    set (env, "MURMUR_RECORDS_DIR", spec->records_dir);
    set (env, "TMPDIR", spec->temp_dir);
    set (env, "TMP", spec->temp_dir);
    set (env, "TEMP", spec->temp_dir);
    strv_sort (env);
}
