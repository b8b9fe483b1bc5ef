/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/artifact_manifest.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/text/grammar.h"
#include "net/auth_header.h"

#include <string.h>
#include <strings.h>

static const char *const packaging_names[] = { "wasm", "native", "static", NULL };

const char *
packaging_name (enum packaging p)
{
    return packaging_names[p];
}

static bool refuse (const struct artifact_manifest *m, struct mur_error **err, enum diag_code code,
                    const char *path, const char *fmt, ...) _printf_ (5, 6);

static bool
refuse (const struct artifact_manifest *m, struct mur_error **err, enum diag_code code,
        const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    const struct schema_reader r = { .arena = m->arena, .file = m->file, .root = m->root };
    return schema_fail (&r, err, code, path, "%s", text);
}

static const struct yaml_node *
present (const struct artifact_manifest *m, const char *key)
{
    const struct yaml_node *n = yaml_get (m->root, key);
    return n && n->kind != YAML_NULL ? n : NULL;
}

/* --- the keys every artifact has --- */

static bool
take_string (struct artifact_manifest *m, const char *key, bool is_required, const char **out,
             struct mur_error **err)
{
    const struct yaml_node *n = present (m, key);
    if (n && n->kind != YAML_STRING) {
        refuse (m, err, E_MAN_003, key, "expected text, found %s %s",
                n->kind == YAML_LIST || n->kind == YAML_MAP ? "a" : "the", yaml_kind_name (n));
        return yaml_is_scalar (n) ? mur_hint (err, "quote it: %s: \"%s\"", key, n->text) : false;
    }
    bool is_blank = ! n || n->text[strspn (n->text, " \t\r\n")] == '\0';
    if (is_blank && is_required) {
        refuse (m, err, E_MAN_001, key, "the required field '%s' is missing or blank", key);
        if (! str_eq (key, "runtime"))
            return mur_hint (err, "add a line such as %s: %s", key,
                             str_eq (key, "name") ? "my-tool" : "0.1.0");
        return yaml_get (m->root, "inference")
                   ? mur_hint (err, "an agent is packed with two more lines, runtime: capsule and "
                                    "execution: static")
                   : mur_hint (err, "say what is packed: runtime: tool, driver, hook, skill or "
                                    "capsule");
    }
    *out = n ? n->text : NULL;
    return true;
}

static bool
take_execution (struct artifact_manifest *m, struct mur_error **err)
{
    const char *written = NULL;
    if (! take_string (m, "execution", false, &written, err))
        return false;
    m->execution_is_declared = written != NULL;
    m->is_native_implementation = str_eq (m->implementation, "native");
    bool is_native_tool = m->is_native_implementation && strcmp (m->runtime, "tool") == 0;
    m->packaging = strcmp (m->runtime, "skill") == 0 ? PACKAGING_STATIC
                   : is_native_tool                  ? PACKAGING_NATIVE
                                                     : PACKAGING_WASM;
    if (! written)
        return true;
    for (size_t i = 0; packaging_names[i]; i++)
        if (strcasecmp (packaging_names[i], written) == 0) {
            m->packaging = (enum packaging)i;
            return true;
        }
    return refuse (m, err, E_MAN_003, "execution",
                   "'%s' is refused: it must be one of: wasm, native, static", written);
}

static bool
take_requires_files (struct artifact_manifest *m, struct mur_error **err)
{
    const struct yaml_node *n = present (m, "requires_files");
    struct str_list *out = &m->requires_files;
    if (! n) {
        bool is_skill = strcmp (m->runtime, "skill") == 0;
        out->items = arena_new_array (m->arena, const char *, 2);
        out->items[0] = is_skill ? "skill.md" : NULL;
        out->len = is_skill;
        return true;
    }
    if (n->kind != YAML_LIST)
        return refuse (m, err, E_MAN_003, "requires_files", "expected a list of texts, found a %s",
                       yaml_kind_name (n));
    out->is_set = true;
    out->items = arena_new_array (m->arena, const char *, (size_t)n->len + 1);
    for (uint32_t i = 0; i < n->len; i++) {
        if (n->items[i]->kind != YAML_STRING)
            return refuse (m, err, E_MAN_003, arena_printf (m->arena, "requires_files[%u]", i),
                           "expected text, found a %s", yaml_kind_name (n->items[i]));
        out->items[out->len++] = n->items[i]->text;
    }
    return true;
}

static bool
take_upstream (struct artifact_manifest *m, struct mur_error **err)
{
    const struct yaml_node *n = present (m, "upstream");
    if (! n)
        return true;
    m->has_upstream_none = n->kind == YAML_STRING && strcmp (n->text, "none") == 0;
    return m->has_upstream_none || refuse (m, err, E_MAN_003, "upstream",
                                           "the only value is none: this driver calls no provider");
}

static bool
take_all (struct artifact_manifest *m, struct mur_error **err)
{
    if (yaml_get (m->root, "registry")) {
        refuse (m, err, E_MAN_003, "registry", "this key does not belong into a manifest");
        return mur_hint (err,
                         "remove it: where artifacts come from is the operator's configuration");
    }
    if (! take_string (m, "name", true, &m->name, err) ||
        ! take_string (m, "version", true, &m->version, err) ||
        ! take_string (m, "runtime", true, &m->runtime, err) ||
        ! take_string (m, "implementation", false, &m->implementation, err) ||
        ! take_string (m, "build", false, &m->build, err) || ! take_execution (m, err) ||
        ! take_requires_files (m, err) || ! take_upstream (m, err))
        return false;
    const struct yaml_node *description = present (m, "description");
    m->description = description && description->kind == YAML_STRING ? description->text : NULL;
    m->input_schema = present (m, "input_schema");
    m->output_schema = present (m, "output_schema");
    m->tags = present (m, "tags");
    m->models = present (m, "models");
    m->upstream_auth = present (m, "upstream_auth");
    m->inference_auth = yaml_get (m->root, "inference_auth");
    m->binding = present (m, "binding");
    m->execution_mode = present (m, "execution_mode");
    m->commit_policy = present (m, "commit_policy");
    return true;
}

struct artifact_manifest *
artifact_manifest_parse (const char *text, size_t len, const char *file, struct mur_error **err)
{
    struct arena *arena = arena_new ();
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        arena_new0 (arena, struct artifact_manifest);
    m->arena = arena;
    m->file = arena_strdup (arena, file);
    m->root = yaml_parse (arena, text, len, file, E_MAN_002, err);
    if (! m->root || ! take_all (m, err))
        return NULL;
    return steal_ptr (&m);
}

struct artifact_manifest *
artifact_manifest_read (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! yaml_read_text (path, E_MAN_002, &text, err))
        return NULL;
    _cleanup_free_ char *shown = fs_shown_path (path);
    return artifact_manifest_parse (text.data ? text.data : "", text.len, shown, err);
}

void
artifact_manifest_free (struct artifact_manifest *m)
{
    if (m)
        arena_free (m->arena); /* m itself lives there */
}

/* --- models --- */

static bool
take_model_key (const struct artifact_manifest *m, const char *path, const struct yaml_pair *pair,
                struct model_limits *out, enum diag_code code, struct mur_error **err)
{
    const struct {
        const char *name;
        uint32_t *slot;
    } keys[] = {
        { "max_output_tokens", &out->max_output_tokens },
        { "context_window", &out->context_window },
        { "max_input_tokens", &out->max_input_tokens },
    };
    const char *name = yaml_is_scalar (pair->key) ? pair->key->text : "?";
    const char *at = arena_printf (m->arena, "%s.%s", path, name);
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) {
        if (strcmp (keys[i].name, name) != 0)
            continue;
        uint64_t value;
        if (! yaml_as_u64 (pair->value, &value) || ! value || value > UINT32_MAX)
            return refuse (m, err, code, at, "it must be a whole number of 1 to 4294967295");
        *keys[i].slot = (uint32_t)value;
        return true;
    }
    refuse (m, err, code, at, "unknown key");
    return mur_hint (err, "accepted keys: max_output_tokens, context_window, max_input_tokens");
}

static bool
take_model (const struct artifact_manifest *m, const struct yaml_pair *pair,
            struct model_limits *out, enum diag_code code, struct mur_error **err)
{
    const struct yaml_node *id = pair->key, *n = pair->value;
    if (id->kind != YAML_STRING || id->text[strspn (id->text, " \t\r\n")] == '\0')
        return refuse (m, err, code, "models",
                       "line %u: a model's id is a text that is not blank; quote it", id->line);
    const char *path = arena_printf (m->arena, "models.%s", id->text);
    out->id = id->text;
    if (n->kind != YAML_MAP)
        return refuse (m, err, code, path, "expected a map, found a %s", yaml_kind_name (n));
    for (uint32_t i = 0; i < n->len; i++)
        if (! take_model_key (m, path, &n->pairs[i], out, code, err))
            return false;
    const char *missing = ! out->max_output_tokens ? "max_output_tokens"
                          : ! out->context_window  ? "context_window"
                                                   : NULL;
    if (missing)
        return refuse (m, err, code, arena_printf (m->arena, "%s.%s", path, missing),
                       "this key is required");
    if (out->max_input_tokens > out->context_window)
        return refuse (m, err, code, arena_printf (m->arena, "%s.max_input_tokens", path),
                       "%u is above context_window %u", out->max_input_tokens, out->context_window);
    return true;
}

bool
artifact_manifest_models (const struct artifact_manifest *m, enum diag_code code,
                          const struct model_limits **models, size_t *len, struct mur_error **err)
{
    const struct yaml_node *n = m->models;
    *models = NULL;
    *len = 0;
    if (! n)
        return true;
    if (strcmp (m->runtime, "driver") != 0)
        return refuse (m, err, code, "models", "only a driver has models, not runtime: %s",
                       m->runtime);
    if (n->kind != YAML_MAP)
        return refuse (m, err, code, "models", "expected a map of model ids, found a %s",
                       yaml_kind_name (n));
    struct model_limits *list = arena_new_array (m->arena, struct model_limits, n->len);
    for (uint32_t i = 0; i < n->len; i++)
        if (! take_model (m, &n->pairs[i], &list[i], code, err))
            return false;
    *models = list;
    *len = n->len;
    return true;
}

/* --- upstream_auth --- */

static const char *
value_problem (const char *value)
{
    for (const char *p = value; *p; p++)
        if (((unsigned char)*p < ' ' && *p != '\t') || (unsigned char)*p >= 0x7f)
            return "it holds a character no header value may hold";
    const char *first = strstr (value, "{key}");
    if (! first || strstr (first + 1, "{key}"))
        return "it must hold {key} exactly once";
    return NULL;
}

bool
artifact_manifest_upstream_auth (const struct artifact_manifest *m, enum diag_code code,
                                 const char **header, const char **value, struct mur_error **err)
{
    if (m->inference_auth) {
        refuse (m, err, code, "inference_auth", "this block is retired");
        return mur_hint (err, "the artifact must declare upstream_auth: {header, value} instead");
    }
    if (! m->upstream_auth)
        return refuse (m, err, code, "upstream_auth",
                       "%s does not say how a key is shown, so a gateway cannot show it", m->name);
    const struct {
        const char *key, *path;
        const char **out;
        const char *(*problem) (const char *);
    } keys[] = { { "header", "upstream_auth.header", header, auth_header_fault },
                 { "value", "upstream_auth.value", value, value_problem } };
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) {
        const struct yaml_node *n = yaml_get (m->upstream_auth, keys[i].key);
        if (! n || n->kind != YAML_STRING)
            return refuse (m, err, code, keys[i].path, "a text is required");
        const char *why = keys[i].problem (n->text);
        if (why)
            return refuse (m, err, code, keys[i].path, "'%s' is refused: %s", n->text, why);
        *keys[i].out = n->text;
    }
    return true;
}
