/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, writing and changing murmur.lock.
 */
#include "artifact/store/lock.h"

#include "artifact/names/name.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/text.h"
#include "fs/replace.h"
#include "manifest/text/merge_marks.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"

#include <string.h>

static const char lock_advice[] = "delete murmur.lock and run `mur install` to write it anew";

static void
entry_clear (struct lock_entry *e)
{
    free (e->name);
    free (e->version);
    free (e->any);
    for (size_t i = 0; i < e->platform_count; i++) {
        free (e->platforms[i].platform);
        free (e->platforms[i].sha256);
    }
    free (e->platforms);
    free (e->session);
    free (e->source);
    free (e->signer);
    *e = (struct lock_entry){ 0 };
}

void
lock_free (struct lock *l)
{
    for (size_t i = 0; i < l->count; i++)
        entry_clear (&l->entries[i]);
    free (l->entries);
    free (l->base);
    free (l->path);
    free (l);
}

/* --- the rules of one entry --- */

/* What is wrong with an entry, or NULL. Owned. */
static char *
entry_problem (const struct lock_entry *e)
{
    if (text_is_blank (e->version))
        return x_strdup ("resolved_version is missing or blank");
    if (! e->any == ! e->platforms)
        return x_strdup (e->any ? "sha256 holds both `any` and `platforms`; exactly one is allowed"
                                : "sha256 holds neither `any` nor `platforms`");
    if (e->any && text_is_blank (e->any))
        return x_strdup ("sha256.any is blank");
    for (size_t i = 0; i < e->platform_count; i++)
        if (text_is_blank (e->platforms[i].platform) || text_is_blank (e->platforms[i].sha256))
            return x_strdup ("sha256.platforms holds a blank platform or hash");
    if (e->platforms && e->platform_count == 0)
        return x_strdup ("sha256.platforms is empty");
    if (e->origin == LOCK_RUNTIME && text_is_blank (e->session))
        return x_strdup ("origin: runtime needs the session that pulled it");
    if (e->origin == LOCK_OPERATOR && e->session)
        return x_strdup ("session may only stand with origin: runtime");
    return NULL;
}

static bool
refuse (const char *path, struct mur_error **err, const char *entry, const char *why)
{
    if (entry)
        mur_fail (err, E_RUN_003, "%s: entry \"%s\": %s", path, entry, why);
    else
        mur_fail (err, E_RUN_003, "%s: %s", path, why);
    return mur_hint (err, "%s", lock_advice);
}

/* --- reading --- */

static int
by_platform (const void *a, const void *b)
{
    return strcmp (((const struct lock_platform *)a)->platform,
                   ((const struct lock_platform *)b)->platform);
}

/* The text of a scalar member, copied; NULL when absent or null. *is_odd is set for a list or a
 * map. */
static char *
take_text (const struct yaml_node *map, const char *key, bool *is_odd)
{
    const struct yaml_node *n = yaml_get (map, key);
    if (! n || n->kind == YAML_NULL)
        return NULL;
    const char *text = yaml_text (n);
    if (! text)
        *is_odd = true;
    return text ? x_strdup (text) : NULL;
}

static bool
take_hashes (const struct yaml_node *n, struct lock_entry *e)
{
    bool is_odd = false;
    if (! n || n->kind != YAML_MAP)
        return n == NULL || n->kind == YAML_NULL;
    e->any = take_text (n, "any", &is_odd);
    const struct yaml_node *platforms = yaml_get (n, "platforms");
    if (! platforms || platforms->kind == YAML_NULL)
        return ! is_odd;
    if (platforms->kind != YAML_MAP)
        return false;
    e->platforms = x_new_array (struct lock_platform, platforms->len + 1);
    for (uint32_t i = 0; i < platforms->len; i++) {
        const char *key = yaml_text (platforms->pairs[i].key);
        const char *hash = yaml_text (platforms->pairs[i].value);
        e->platforms[e->platform_count++] = (struct lock_platform){
            .platform = x_strdup (key ? key : ""),
            .sha256 = x_strdup (hash ? hash : ""),
        };
    }
    qsort (e->platforms, e->platform_count, sizeof (*e->platforms), by_platform);
    return ! is_odd;
}

static bool
take_origin (const struct yaml_node *map, struct lock_entry *e)
{
    const struct yaml_node *n = yaml_get (map, "origin");
    if (! n || n->kind == YAML_NULL)
        return true;
    const char *text = yaml_text (n);
    e->origin = str_eq (text, "runtime") ? LOCK_RUNTIME : LOCK_OPERATOR;
    return str_eq (text, "runtime") || str_eq (text, "operator");
}

static bool
take_owner (const struct yaml_node *map, struct lock_entry *e)
{
    const struct yaml_node *n = yaml_get (map, "owner_id");
    if (! n || n->kind == YAML_NULL)
        return true;
    e->has_owner_id = yaml_as_u64 (n, &e->owner_id);
    return e->has_owner_id;
}

static bool
read_entry (struct lock *l, const struct yaml_node *node, size_t index, struct mur_error **err)
{
    struct lock_entry *e = &l->entries[l->count++];
    bool is_odd = false;
    e->name = take_text (node, "name", &is_odd);
    _cleanup_free_ char *which =
        e->name ? x_strdup (e->name) : x_asprintf ("artifacts[%zu]", index);
    if (node->kind != YAML_MAP)
        return refuse (l->path, err, which, "it is not a map");
    if (! e->name)
        return refuse (l->path, err, which, "it has no name");
    if (! name_check_full (e->name, E_RUN_003, l->path, err))
        return mur_hint (err, "%s", lock_advice);
    e->version = take_text (node, "resolved_version", &is_odd);
    e->session = take_text (node, "session", &is_odd);
    e->source = take_text (node, "source", &is_odd);
    e->signer = take_text (node, "signer", &is_odd);
    if (! take_hashes (yaml_get (node, "sha256"), e) || is_odd)
        return refuse (l->path, err, which, "a value is of the wrong type");
    if (! take_origin (node, e))
        return refuse (l->path, err, which, "origin must be operator or runtime");
    if (! take_owner (node, e))
        return refuse (l->path, err, which, "owner_id must be a whole number");
    _cleanup_free_ char *why = entry_problem (e);
    return ! why || refuse (l->path, err, which, why);
}

static bool
check_version (const char *path, const struct yaml_node *root, struct mur_error **err)
{
    const struct yaml_node *n = yaml_get (root, "lock_version");
    uint64_t version;
    if (n && yaml_as_u64 (n, &version) && version == LOCK_VERSION)
        return true;
    const char *found = n ? yaml_text (n) : NULL;
    mur_fail (err, E_RUN_003, "%s: lock_version %s is not supported; this mur reads version %d",
              path, found ? found : "(missing)", LOCK_VERSION);
    return mur_hint (err, "%s", lock_advice);
}

struct lock *
lock_parse (const char *text, size_t len, const char *path, struct mur_error **err)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    size_t mark = merge_mark_line (text, len);
    if (mark) {
        mur_fail (err, E_RUN_003, "%s:%zu: a conflict mark of a merge: two branches pinned here",
                  path, mark);
        return mur_hint (err, "`mur install --resolve` puts the pins of both together"), NULL;
    }
    struct yaml_node *root = yaml_parse (arena, text, len, path, E_RUN_003, err);
    if (! root)
        return mur_hint (err, "%s", lock_advice), NULL;
    if (! check_version (path, root, err))
        return NULL;
    _cleanup_lock_ struct lock *l = x_new0 (struct lock);
    l->path = x_strdup (path);
    l->base = x_strndup (text, len);
    l->exists = true;
    const struct yaml_node *list = yaml_get (root, "artifacts");
    if (! list || list->kind != YAML_LIST)
        return refuse (path, err, NULL, "artifacts is missing or not a list"), NULL;
    l->cap = list->len ? list->len : 1;
    l->entries = x_new_array (struct lock_entry, l->cap);
    for (uint32_t i = 0; i < list->len; i++)
        if (! read_entry (l, list->items[i], i, err))
            return NULL;
    return steal_ptr (&l);
}

/* --- writing --- */

static void
put (struct buf *out, const char *key, const char *value)
{
    buf_puts (out, key);
    yaml_put_text (out, value);
    buf_putc (out, '\n');
}

static void
put_entry (struct buf *out, const struct lock_entry *e)
{
    put (out, "- name: ", e->name);
    put (out, "  resolved_version: ", e->version);
    buf_puts (out, "  sha256:\n");
    if (e->any)
        put (out, "    any: ", e->any);
    else
        buf_puts (out, "    platforms:\n");
    for (size_t i = 0; i < e->platform_count; i++) {
        buf_puts (out, "      ");
        yaml_put_text (out, e->platforms[i].platform);
        put (out, ": ", e->platforms[i].sha256);
    }
    put (out, "  origin: ", e->origin == LOCK_RUNTIME ? "runtime" : "operator");
    if (e->session)
        put (out, "  session: ", e->session);
    if (e->has_owner_id)
        buf_printf (out, "  owner_id: %llu\n", (unsigned long long)e->owner_id);
    if (e->source)
        put (out, "  source: ", e->source);
    if (e->signer)
        put (out, "  signer: ", e->signer);
}

char *
lock_text (const struct lock *l)
{
    struct buf out = { 0 };
    buf_printf (&out, "lock_version: %d\nartifacts:%s\n", LOCK_VERSION, l->count ? "" : " []");
    for (size_t i = 0; i < l->count; i++)
        put_entry (&out, &l->entries[i]);
    return buf_steal (&out);
}

char *
lock_entry_text (const struct lock_entry *e)
{
    struct buf out = { 0 };
    put_entry (&out, e);
    return buf_steal (&out);
}

bool
lock_check (const struct lock *l, struct mur_error **err)
{
    for (size_t i = 0; i < l->count; i++) {
        _cleanup_free_ char *why = entry_problem (&l->entries[i]);
        if (why)
            return refuse (l->path, err, l->entries[i].name, why);
    }
    return true;
}

/* --- looking --- */

struct lock_entry *
lock_find (const struct lock *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp (l->entries[i].name, name) == 0)
            return &l->entries[i];
    return NULL;
}

static struct lock_platform *
find_platform (const struct lock_entry *e, const char *platform)
{
    for (size_t i = 0; i < e->platform_count; i++)
        if (strcmp (e->platforms[i].platform, platform) == 0)
            return &e->platforms[i];
    return NULL;
}

const char *
lock_entry_hash (const struct lock_entry *e, const char *platform)
{
    if (e->any)
        return e->any;
    const struct lock_platform *found = find_platform (e, platform);
    return found ? found->sha256 : NULL;
}

char *
lock_entry_platforms (const struct lock_entry *e)
{
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < e->platform_count; i++)
        strv_push (&names, e->platforms[i].platform);
    return strv_join (&names, ", ");
}

/* --- changing --- */

static void
set_text (char **at, const char *text)
{
    free (*at);
    *at = text ? x_strdup (text) : NULL;
}

static void
drop_hashes (struct lock_entry *e)
{
    set_text (&e->any, NULL);
    for (size_t i = 0; i < e->platform_count; i++) {
        free (e->platforms[i].platform);
        free (e->platforms[i].sha256);
    }
    free (e->platforms);
    e->platforms = NULL;
    e->platform_count = 0;
}

static void
set_platform (struct lock_entry *e, const char *platform, const char *sha256)
{
    struct lock_platform *found = find_platform (e, platform);
    if (found) {
        set_text (&found->sha256, sha256);
        return;
    }
    e->platforms = x_reallocarray (e->platforms, e->platform_count + 1, sizeof (*e->platforms));
    e->platforms[e->platform_count++] = (struct lock_platform){
        .platform = x_strdup (platform),
        .sha256 = x_strdup (sha256),
    };
    qsort (e->platforms, e->platform_count, sizeof (*e->platforms), by_platform);
}

static void
set_hash (struct lock_entry *e, const struct lock_pin *pin)
{
    if (! pin->platform) {
        set_text (&e->any, pin->sha256);
        return;
    }
    for (size_t i = 0; pin->platforms && i < pin->platforms->len; i++) {
        const char *text = pin->platforms->items[i], *space = strchr (text, ' ');
        _cleanup_free_ char *platform = x_strndup (text, (size_t)(space - text));
        set_platform (e, platform, space + 1);
    }
    set_platform (e, pin->platform, pin->sha256);
}

static struct lock_entry *
append_entry (struct lock *l, const struct lock_pin *pin)
{
    x_grow (l->entries, l->count, l->cap);
    l->entries[l->count] = (struct lock_entry){
        .name = x_strdup (pin->name),
        .origin = pin->origin,
        .session = pin->origin == LOCK_RUNTIME ? x_strdup (pin->session) : NULL,
    };
    return &l->entries[l->count++];
}

static bool
pins_hash (const struct lock_entry *e, const struct lock_pin *pin)
{
    const char *hash = lock_entry_hash (e, pin->platform ? pin->platform : "");
    return str_eq (hash, pin->sha256);
}

void
lock_pin (struct lock *l, const struct lock_pin *pin, char **adopted_session)
{
    struct lock_entry *e = lock_find (l, pin->name);
    if (! e)
        e = append_entry (l, pin);
    bool same_shape = e->any ? ! pin->platform : pin->platform != NULL;
    bool is_other = ! str_eq (e->version, pin->version) || ! same_shape;
    if (is_other || (e->any && ! str_eq (e->any, pin->sha256)) || pin->source)
        set_text (&e->source, pin->source);
    if (is_other || ! pins_hash (e, pin) || pin->signer)
        set_text (&e->signer, pin->signer);
    if (is_other)
        drop_hashes (e);
    set_text (&e->version, pin->version);
    set_hash (e, pin);
    if (e->origin == LOCK_RUNTIME && pin->origin == LOCK_OPERATOR) {
        e->origin = LOCK_OPERATOR;
        if (adopted_session)
            *adopted_session = steal_ptr (&e->session);
        set_text (&e->session, NULL);
    }
    if (pin->has_owner_id) {
        e->has_owner_id = true;
        e->owner_id = pin->owner_id;
    }
}

static bool
hint_conflict (const char *name, struct mur_error **err)
{
    return mur_hint (
        err, "when the change is meant, `mur install --update %s` pins what is found now", name);
}

bool
lock_check_conflict (const struct lock *l, const struct lock_pin *pin, struct mur_error **err)
{
    const struct lock_entry *e = lock_find (l, pin->name);
    if (! e)
        return true;
    const char *pinned = lock_entry_hash (e, pin->platform ? pin->platform : "");
    if (strcmp (e->version, pin->version) != 0)
        mur_fail (err, E_REG_005, "%s: murmur.lock pins %s@%s, resolved was %s@%s", pin->name,
                  pin->name, e->version, pin->name, pin->version);
    else if (e->any ? pin->platform != NULL : pin->platform == NULL)
        mur_fail (err, E_REG_005, "%s@%s: murmur.lock pins %s, resolved was %s", pin->name,
                  pin->version, e->any ? "one payload for all platforms" : "a payload per platform",
                  pin->platform ? pin->platform : "a payload for all platforms");
    else if (pinned && strcmp (pinned, pin->sha256) != 0)
        mur_fail (err, E_REG_005, "%s@%s: murmur.lock pins sha256 %s, resolved was %s", pin->name,
                  pin->version, pinned, pin->sha256);
    else
        return true;
    return hint_conflict (pin->name, err);
}

bool
lock_drop (struct lock *l, const char *name)
{
    struct lock_entry *e = lock_find (l, name);
    if (! e)
        return false;
    entry_clear (e);
    size_t index = (size_t)(e - l->entries);
    memmove (e, e + 1, (l->count - index - 1) * sizeof (*e));
    l->count--;
    return true;
}

bool
lock_check_owner (const struct lock *l, const char *scope, uint64_t owner_id,
                  struct mur_error **err)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct lock_entry *e = &l->entries[i];
        if (! e->has_owner_id || e->owner_id == owner_id || ! name_has_scope (e->name, scope))
            continue;
        mur_fail (err, E_REG_010,
                  "scope \"%s\" belongs to another account now: murmur.lock recorded owner id %llu "
                  "(%s), found %llu",
                  scope, (unsigned long long)e->owner_id, e->name, (unsigned long long)owner_id);
        return mur_hint (err, "the account may have been renamed and its name taken by somebody "
                              "else; ask the publisher before removing the entry from murmur.lock");
    }
    return true;
}

bool
lock_check_place (const struct lock *l, const char *scope, const char *place,
                  struct mur_error **err)
{
    size_t len = strlen (place);
    for (size_t i = 0; i < l->count; i++) {
        const struct lock_entry *e = &l->entries[i];
        if (! name_has_scope (e->name, scope))
            continue;
        bool is_there = e->source && strncmp (e->source, place, len) == 0 && e->source[len] == '/';
        if (is_there || (! e->source && ! e->has_owner_id))
            continue;
        mur_fail (err, E_REG_010,
                  "scope \"%s\" comes from another place now: murmur.lock recorded %s for %s, the "
                  "configuration names %s",
                  scope, e->source ? e->source : "the owner of a repository", e->name, place);
        return mur_hint (err, "ask the publisher before removing the entries of the scope from "
                              "murmur.lock");
    }
    return true;
}
