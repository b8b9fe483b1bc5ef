/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/grammar.h"

#include "base/alloc.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const containment_names[] = { "advisory", "scoped", "sealed" };

const char *
containment_name (enum containment_class c)
{
    return containment_names[c];
}

bool
containment_parse (const char *text, enum containment_class *c)
{
    for (size_t i = 0; i < ARRAY_LEN (containment_names); i++)
        if (strcmp (text, containment_names[i]) == 0) {
            *c = (enum containment_class)i;
            return true;
        }
    return false;
}

#define BLANKS " \t\n\v\f\r"

char *
text_trim (struct arena *a, const char *text)
{
    size_t len;
    const char *inner = text_inner (text, &len);
    return arena_strndup (a, inner, len);
}

/* --- durations and sizes --- */

struct unit {
    const char *name;
    uint64_t factor;
};

static bool
quantity_parse (const char *text, const struct unit *units, uint64_t *value)
{
    size_t len;
    const char *p = text_inner (text, &len), *end = p + len;
    uint64_t n = 0;
    const char *first = p;
    for (; p < end && isdigit ((unsigned char)*p); p++)
        if (__builtin_mul_overflow (n, 10, &n) ||
            __builtin_add_overflow (n, (uint64_t)(*p - '0'), &n))
            return false;
    if (p == first)
        return false;
    for (; units->name; units++)
        if (strlen (units->name) == (size_t)(end - p) &&
            memcmp (units->name, p, (size_t)(end - p)) == 0)
            return ! __builtin_mul_overflow (n, units->factor, value);
    return false;
}

bool
duration_parse (const char *text, uint64_t *seconds)
{
    static const struct unit units[] = {
        { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 60 * 60 }, { "d", 24 * 60 * 60 }, { NULL, 0 }
    };
    return quantity_parse (text, units, seconds);
}

bool
byte_size_parse (const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {
        { "", 1 }, { "Ki", 1 << 10 }, { "Mi", 1 << 20 }, { "Gi", 1 << 30 }, { NULL, 0 }
    };
    return quantity_parse (text, units, bytes);
}

/* --- paths --- */

char *
subpath_lower (const char *text, const char **why)
{
    if (text[0] == '/') {
        *why = "it must be relative to the work folder, not absolute";
        return NULL;
    }
    struct buf out = { 0 };
    buf_puts (&out, "");
    for (const char *p = text; *p;) {
        size_t len = strcspn (p, "/");
        bool is_dot = len == 1 && p[0] == '.';
        if (len == 2 && p[0] == '.' && p[1] == '.') {
            if (! out.len) {
                buf_free (&out);
                *why = "it leaves the work folder through '..'";
                return NULL;
            }
            const char *slash = strrchr (out.data, '/');
            buf_truncate (&out, slash ? (size_t)(slash - out.data) : 0);
        } else if (len && ! is_dot) {
            if (out.len)
                buf_putc (&out, '/');
            buf_append (&out, p, len);
        }
        p += len;
        p += *p == '/';
    }
    return buf_steal (&out);
}

bool
subpath_is_within (const char *path, const char *tree)
{
    size_t len = strlen (tree);
    return ! len || (strncmp (path, tree, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

bool
segment_is_valid (const char *text)
{
    return text[0] && text[0] != '.' && ! strchr (text, '/');
}

/* --- environment --- */

bool
env_pattern_matches (const char *pattern, const char *name)
{
    size_t len = strlen (pattern), name_len = strlen (name);
    bool opens = len && pattern[0] == '*';
    bool closes = len > 1 && pattern[len - 1] == '*';
    const char *core = pattern + opens;
    size_t core_len = len - opens - closes;
    if (! opens && ! closes)
        return strcmp (pattern, name) == 0;
    if (core_len > name_len)
        return false;
    if (opens && closes)
        return memmem (name, name_len, core, core_len) != NULL;
    return memcmp (opens ? name + name_len - core_len : name, core, core_len) == 0;
}

/* The built-in credential backstop, NULL-terminated. Static. */
static const char *const *
env_backstop (void)
{
    static const char *const patterns[] = {
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
        NULL,
    };
    return patterns;
}

const char *
env_stripped_by (const char *name, const char *const *strip, size_t strip_len, bool *is_builtin)
{
    for (const char *const *p = env_backstop (); *p; p++)
        if (env_pattern_matches (*p, name)) {
            *is_builtin = true;
            return *p;
        }
    *is_builtin = false;
    for (size_t i = 0; i < strip_len; i++)
        if (env_pattern_matches (strip[i], name))
            return strip[i];
    return NULL;
}

bool
env_name_is_credential_shaped (const char *name)
{
    static const char *const parts[] = { "api_key", "token", "secret", "password" };
    static const char *const segments[] = { "KEY",        "KEYS",       "PASS",        "PASSWD",
                                            "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CREDS",
                                            "DSN",        "AUTH",       "PAT",         "COOKIE" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        if (strcasestr (name, parts[i]))
            return true;
    for (const char *p = name; *p;) {
        size_t len = 0;
        while (isalnum ((unsigned char)p[len]))
            len++;
        for (size_t i = 0; len && i < ARRAY_LEN (segments); i++)
            if (strlen (segments[i]) == len && strncasecmp (segments[i], p, len) == 0)
                return true;
        p += len ? len : 1;
    }
    return false;
}

bool
env_name_is_runtime_owned (const char *name)
{
    static const char *const names[] = {
        "MURMUR_ARTIFACT_CONFIG",  "MURMUR_RUNTIME_DIR",       "MURMUR_RECORDS_DIR",
        "MURMUR_FORMATION_PEERS",  "MURMUR_FORMATION_CHANNEL", "MURMUR_FORMATION_LIFELINE",
        "MURMUR_SPAWNER_LIFELINE",
    };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strcmp (name, names[i]) == 0)
            return true;
    return false;
}

/* --- references --- */

static bool
is_upper_snake (const char *text, size_t len)
{
    if (! len || isdigit ((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (! (text[i] >= 'A' && text[i] <= 'Z') && ! isdigit ((unsigned char)text[i]) &&
            text[i] != '_')
            return false;
    return true;
}

bool
upper_snake_is_valid (const char *text)
{
    return is_upper_snake (text, strlen (text));
}

char *
reference_name (struct arena *a, const char *text)
{
    size_t len = strlen (text);
    if (len < 4 || text[0] != '$' || text[1] != '{' || text[len - 1] != '}' ||
        ! is_upper_snake (text + 2, len - 3))
        return NULL;
    return arena_strndup (a, text + 2, len - 3);
}
