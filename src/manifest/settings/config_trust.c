/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/config_trust.h"

#include "base/alloc.h"
#include "manifest/text/yaml_tree.h"

#include <string.h>

void
config_trust_clear (struct config_trust *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free (t->rules[i].pattern);
        strv_free (&t->rules[i].keys);
    }
    free (t->rules);
    *t = (struct config_trust){ 0 };
}

static bool
refuse (const char *file, const char *pattern, struct mur_error **err)
{
    mur_fail (err, E_TRU_004, "%s: trust.require%s%s is no list of names of keys, and not `none`",
              file, pattern ? "." : "", pattern ? pattern : "");
    return mur_hint (err, "write a scope, or a pattern of names, and its keys: `ana: [ana-2026]`");
}

static bool
read_rule (const struct yaml_node *value, const char *file, struct config_trust_rule *rule,
           struct mur_error **err)
{
    const char *text = value && value->kind != YAML_LIST ? yaml_text (value) : NULL;
    if (str_eq (text, "none"))
        return true;
    if (text && *text)
        strv_push (&rule->keys, text);
    for (size_t i = 0; value && value->kind == YAML_LIST && i < value->len; i++) {
        const char *name = yaml_text (value->items[i]);
        if (! name || ! *name)
            return refuse (file, rule->pattern, err);
        strv_push (&rule->keys, name);
    }
    return rule->keys.len > 0 || refuse (file, rule->pattern, err);
}

/* Whether a pattern can name a scope, or with its one '/' a name: what names nothing asks for no
 * signature, and nobody would notice. */
static bool
is_pattern (const char *text)
{
    size_t len = strlen (text), slashes = 0;
    bool is_class = false, is_sound = len > 0 && text[0] != '/' && text[len - 1] != '/';
    for (const char *p = text; *p; p++) {
        bool is_sign = strchr (is_class ? "!^-]" : "*?[-/", *p) != NULL;
        is_sound &= is_sign || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        slashes += *p == '/';
        is_class = is_class ? *p != ']' : *p == '[';
    }
    return is_sound && ! is_class && slashes <= 1;
}

static bool
refuse_pattern (const char *file, const char *pattern, struct mur_error **err)
{
    mur_fail (err, E_TRU_004, "%s: trust.require: \"%s\" can name no artifact", file, pattern);
    return mur_hint (err, "write a scope (`ana`), a full name (`ana/tool-git`) or a pattern of "
                          "either (`acme-*`): a-z, 0-9, '-', '*', '?' and [...]");
}

bool
config_trust_read (const struct yaml_node *root, const char *file, struct config_trust *out,
                   struct mur_error **err)
{
    const struct yaml_node *trust = yaml_get (root, "trust");
    if (! trust || trust->kind == YAML_NULL)
        return true;
    const struct yaml_node *require = trust->kind == YAML_MAP ? yaml_get (trust, "require") : NULL;
    if (! require || require->kind != YAML_MAP)
        return refuse (file, NULL, err);
    out->rules = x_new_array (struct config_trust_rule, require->len + 1);
    for (size_t i = 0; i < require->len; i++) {
        struct config_trust_rule *rule = &out->rules[out->count++];
        if (! yaml_is_scalar (require->pairs[i].key))
            return refuse (file, NULL, err);
        rule->pattern = x_strdup (require->pairs[i].key->text);
        if (! is_pattern (rule->pattern))
            return refuse_pattern (file, rule->pattern, err);
        if (! read_rule (require->pairs[i].value, file, rule, err))
            return false;
    }
    return true;
}
