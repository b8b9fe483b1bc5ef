/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/literals.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "manifest/text/grammar.h"

#include <string.h>
#include <strings.h>

struct walk {
    struct buf path;
    struct arena *scratch;
    size_t found;
};

static bool
key_is_credential_shaped (const char *key)
{
    static const char *const parts[] = { "api_key", "token", "secret", "password" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++)
        if (strcasestr (key, parts[i]))
            return true;
    return false;
}

static void
judge_pair (struct walk *w, const char *key, const struct yaml_node *value)
{
    if (value->kind != YAML_STRING || ! key_is_credential_shaped (key) ||
        reference_name (w->scratch, value->text) ||
        (! str_starts (value->text, "sk-") && value->len <= 8))
        return;
    w->found++;
    diag_stderr_line ("[murmur-artifact] warning[W-SEC-004]: '%s' looks like a literal secret\n"
                      "  → whoever gets the package reads it\n"
                      "  → write ${NAME} and let the operator supply the value\n"
                      "  → mur explain W-SEC-004",
                      w->path.data);
}

static void
walk_node (struct walk *w, const struct yaml_node *n)
{
    size_t base = w->path.len;
    for (uint32_t i = 0; n->kind == YAML_LIST && i < n->len; i++) {
        buf_printf (&w->path, "%s%u", base ? "." : "", i);
        walk_node (w, n->items[i]);
        buf_truncate (&w->path, base);
    }
    for (uint32_t i = 0; n->kind == YAML_MAP && i < n->len; i++) {
        const struct yaml_node *key = n->pairs[i].key;
        if (! yaml_is_scalar (key))
            continue;
        buf_printf (&w->path, "%s%s", base ? "." : "", key->text);
        judge_pair (w, key->text, n->pairs[i].value);
        walk_node (w, n->pairs[i].value);
        buf_truncate (&w->path, base);
    }
}

size_t
artifact_manifest_warn_literals (const struct yaml_node *root)
{
    struct walk w = { .scratch = arena_new () };
    walk_node (&w, root);
    buf_free (&w.path);
    arena_free (w.scratch);
    return w.found;
}
