/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/approvals.h"

#include "base/alloc.h"

static const char *const kind_names[] = { "tools", "commands", "hosts", "paths", "capsules" };

const char *
approval_kind_name (enum approval_kind kind)
{
    return kind_names[kind];
}

static void
add (struct approval_rules *rules, enum approval_kind kind, const char *text, bool is_inherited)
{
    rules->items[rules->len++] = (struct approval_rule){ kind, text, is_inherited };
}

static size_t
add_own (struct approval_rules *rules, const struct approvals *own)
{
    const struct str_list *lists[] = { &own->tools, &own->commands, &own->hosts, &own->paths,
                                       &own->capsules };
    size_t count = 0;
    for (size_t kind = 0; kind < ARRAY_LEN (lists); kind++)
        for (size_t i = 0; i < lists[kind]->len; i++, count++)
            if (rules->items)
                add (rules, (enum approval_kind)kind, lists[kind]->items[i], false);
    return count;
}

static size_t
add_inherited (struct arena *arena, struct approval_rules *rules, const json_t *inherited)
{
    size_t count = 0, i;
    const json_t *text;
    for (size_t kind = 0; kind < ARRAY_LEN (kind_names); kind++)
        json_array_foreach (json_object_get (inherited, kind_names[kind]), i, text)
        {
            count++;
            if (rules->items && json_is_string (text))
                add (rules, (enum approval_kind)kind,
                     arena_strdup (arena, json_string_value (text)), true);
        }
    return count;
}

bool
approval_rules_lower (struct arena *arena, const struct approvals *own, const char *inherited,
                      struct approval_rules *out, struct mur_error **err)
{
    static const struct approvals none;
    _cleanup_json_ json_t *given = inherited ? json_loads (inherited, 0, NULL) : NULL;
    *out = (struct approval_rules){ .timeout_secs = 300 };
    if (inherited && ! json_is_object (given))
        return mur_fail (err, E_RUN_020, "MURMUR_SPAWNER: approvals is no object");
    size_t count = add_own (out, own ? own : &none) + add_inherited (arena, out, given);
    out->items = arena_new_array (arena, struct approval_rule, count + 1);
    add_own (out, own ? own : &none);
    add_inherited (arena, out, given);
    if (own) {
        out->timeout_secs = own->timeout_secs.value;
        out->allows_on_timeout = own->on_timeout.value == APPROVAL_TIMEOUT_ALLOWS;
    }
    if (given) {
        uint64_t secs = (uint64_t)json_integer_value (json_object_get (given, "timeout_secs"));
        bool allows = str_eq (json_get_string (given, "on_timeout"), "allow");
        out->timeout_secs = own && out->timeout_secs < secs ? out->timeout_secs : secs;
        out->allows_on_timeout = allows && (! own || out->allows_on_timeout);
    }
    return true;
}

json_t *
approval_rules_json (const struct approval_rules *rules, bool for_child)
{
    json_t *o = json_object ();
    for (size_t i = 0; i < rules->len; i++) {
        const struct approval_rule *r = &rules->items[i];
        const char *key = kind_names[r->kind];
        if (for_child && r->kind == APPROVAL_PATH)
            continue;
        if (! json_object_get (o, key))
            json_object_set_new (o, key, json_array ());
        json_array_append_new (json_object_get (o, key), json_string (r->text));
    }
    if (! json_object_size (o)) {
        json_decref (o);
        return NULL;
    }
    json_set_u64 (o, "timeout_secs", rules->timeout_secs);
    json_set_string (o, "on_timeout", rules->allows_on_timeout ? "allow" : "refuse");
    return o;
}
