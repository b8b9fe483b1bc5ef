/* SPDX-License-Identifier: Apache-2.0
 *
 * Environments of native subprocesses. See environment.h.
 */
#include "sandbox/environment.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

static const char *const host_names[] = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "CARGO_HOME", "RUSTUP_HOME", "TERM",
};

/* No manifest can exempt a name from these. */
static const char *const credentials[] = {
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GOOGLE_API_KEY",
    "HUGGING_FACE_HUB_TOKEN",
    "AWS_*",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "DOCKER_*",
    "KUBECONFIG",
    "NPM_TOKEN",
    "PYPI_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "*_API_KEY",
};

/* Baseline names are never taken for these: they belong to the process that launched the runtime.
 */
static const char *const withheld[] = {
    "MURMUR_FORMATION_ID",    "MURMUR_FORMATION_CHANNEL", "MURMUR_FORMATION_LIFELINE",
    "MURMUR_FORMATION_PEERS", "MURMUR_SPAWNER_LIFELINE",
};

bool
environment_pattern_matches (const char *pattern, const char *name)
{
    size_t len = strlen (pattern);
    bool is_open_start = len && pattern[0] == '*';
    bool is_open_end = len > 1 && pattern[len - 1] == '*';
    if (len == 1 && is_open_start)
        return true;
    const char *word = pattern + is_open_start;
    size_t word_len = len - is_open_start - is_open_end;
    size_t name_len = strlen (name);
    if (is_open_start && is_open_end)
        return memmem (name, name_len, word, word_len) != NULL;
    if (is_open_start)
        return name_len >= word_len && memcmp (name + name_len - word_len, word, word_len) == 0;
    if (is_open_end)
        return strncmp (name, word, word_len) == 0;
    return str_eq (pattern, name);
}

const char *
environment_credential_pattern (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (credentials); i++)
        if (environment_pattern_matches (credentials[i], name))
            return credentials[i];
    return NULL;
}

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

static bool
is_stripped (const struct environment_spec *spec, const char *name)
{
    if (environment_credential_pattern (name))
        return true;
    for (size_t i = 0; spec->strip && spec->strip[i]; i++)
        if (environment_pattern_matches (spec->strip[i], name))
            return true;
    return false;
}

void
command_environment_build (const struct environment_spec *spec, struct strv *env)
{
    for (size_t i = 0; i < ARRAY_LEN (host_names); i++)
        copy_from_host (env, spec->host, host_names[i]);
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
