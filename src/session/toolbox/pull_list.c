/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/pull_list.h"
#include "artifact/store/store_list.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "net/resolver.h"
#include "session/state/session.h"
#include "session/toolbox/pull.h"

#include <string.h>

#define MATCHES_MAX 50

static void
match_clear (struct pull_match *m)
{
    free (m->name);
    free (m->role);
    free (m->description);
    free (m->newest_fitting);
    strv_free (&m->versions);
    strv_free (&m->held_in);
}

void
pull_matches_clear (struct pull_matches *m)
{
    for (size_t i = 0; i < m->len; i++)
        match_clear (&m->items[i]);
    free (m->items);
    strv_free (&m->notes);
    *m = (struct pull_matches){ 0 };
}

/* The match of a name, made when it is new. What names it first says its role. */
static struct pull_match *
match_of (struct pull_matches *m, const char *name, const char *role)
{
    for (size_t i = 0; i < m->len; i++)
        if (strcmp (m->items[i].name, name) == 0)
            return &m->items[i];
    x_grow (m->items, m->len, m->cap);
    m->items[m->len] = (struct pull_match){ .name = x_strdup (name), .role = x_strdup (role) };
    return &m->items[m->len++];
}

static void
push_once (struct strv *v, const char *text)
{
    if (! strv_contains (v, text))
        strv_push (v, text);
}

static void
take_version (struct pull_match *m, const char *version, bool fits, const char *held_in)
{
    push_once (&m->versions, version);
    push_once (&m->held_in, held_in);
    if (! fits || (m->newest_fitting && version_compare (version, m->newest_fitting) <= 0))
        return;
    free (m->newest_fitting);
    m->newest_fitting = x_strdup (version);
}

/* --- stores --- */

static bool
is_pullable (const struct session *s, const struct store_row *row)
{
    bool is_static = str_eq (row->packaging, "static");
    return is_static == str_eq (row->role, "skill") && pull_covers_role (s, row->name, row->role);
}

static bool
row_fits (const struct store_row *row)
{
    bool has_payload = row->has_untagged || strv_contains (&row->platforms, platform_host ());
    return has_payload && wit_fits (&row->contracts, wit_served_level (), NULL);
}

static void
find_stored (struct session *s, const char *pattern, struct pull_matches *out)
{
    for (int kind = 0; kind < STORE_COUNT; kind++) {
        _cleanup_rows_ struct store_rows rows = { 0 };
        const struct store *store = &s->asked->stores->at[kind];
        if (! store->root || ! store_list (store, &rows, NULL))
            continue;
        _cleanup_free_ char *label =
            x_asprintf ("%s store", store_kind_name ((enum store_kind)kind));
        for (size_t i = 0; i < rows.len; i++) {
            const struct store_row *row = &rows.items[i];
            if (! pattern_matches (pattern, row->name) || ! is_pullable (s, row))
                continue;
            struct pull_match *m = match_of (out, row->name, row->role);
            take_version (m, row->version, row_fits (row), label);
            m->is_native = str_eq (row->packaging, "native");
        }
    }
}

/* --- sources --- */

/* Whether a pattern could name anything of a scope. */
static bool
reaches_scope (const char *pattern, const char *scope)
{
    return strcmp (pattern, "*") == 0 || name_has_scope (pattern, scope);
}

static bool
grant_reaches_scope (const struct session *s, const char *scope)
{
    const struct str_list *lists[] = { &s->policy->install.skill, &s->policy->install.tool };
    for (size_t k = 0; k < ARRAY_LEN (lists); k++)
        for (size_t i = 0; i < lists[k]->len; i++)
            if (reaches_scope (lists[k]->items[i], scope))
                return true;
    return false;
}

static void
take_listed (struct session *s, const char *pattern, const char *label, const char *scope,
             const struct index_artifact *a, struct pull_matches *out)
{
    _cleanup_free_ char *name = x_asprintf ("%s/%s", scope, a->name);
    if (! pattern_matches (pattern, name) || ! pull_covers_role (s, name, a->runtime))
        return;
    struct pull_match *m = match_of (out, name, a->runtime);
    const struct index_version *newest = index_newest_fit (a, platform_host ());
    for (size_t i = 0; i < a->version_count; i++)
        take_version (m, a->versions[i].version, &a->versions[i] == newest, label);
    if (! m->description && a->description)
        m->description = x_strdup (a->description);
}

static bool
find_listed (struct session *s, const char *pattern, struct cancel *cancel,
             struct pull_matches *out, char **refusal)
{
    _cleanup_ (pull_close_remote) struct remote *remote = NULL;
    if (! pull_open_remote (s, cancel, &remote, refusal))
        return false;
    const char *scope;
    for (size_t i = 0; remote && (scope = remote_scope (remote, i)); i++) {
        struct mur_error *err = NULL;
        if (! reaches_scope (pattern, scope) || ! grant_reaches_scope (s, scope))
            continue;
        const struct artifact_index *x = remote_index (remote, scope, &err);
        if (! x) {
            strv_take (&out->notes, pull_error_line (err));
            continue;
        }
        _cleanup_free_ char *label = remote_label (remote, scope);
        for (size_t k = 0; k < x->count; k++)
            take_listed (s, pattern, label, scope, &x->artifacts[k], out);
    }
    return true;
}

/* --- the answer --- */

static int
newest_first (const void *a, const void *b)
{
    return version_compare (*(char *const *)b, *(char *const *)a);
}

static int
by_name (const void *a, const void *b)
{
    return strcmp (((const struct pull_match *)a)->name, ((const struct pull_match *)b)->name);
}

bool
pull_find (struct session *s, const char *pattern, struct cancel *cancel, struct pull_matches *out,
           char **refusal)
{
    if (! pull_is_granted (s)) {
        *refusal = x_strdup ("not-granted: this capsule declares no capabilities.install");
        return false;
    }
    _cleanup_free_ char *problem = pattern_problem (pattern);
    if (problem) {
        *refusal = x_asprintf ("not-granted: %s", problem);
        return false;
    }
    find_stored (s, pattern, out);
    if (! find_listed (s, pattern, cancel, out, refusal))
        return false;
    if (out->len)
        qsort (out->items, out->len, sizeof (*out->items), by_name);
    for (size_t i = 0; i < out->len; i++)
        qsort (out->items[i].versions.items, out->items[i].versions.len, sizeof (char *),
               newest_first);
    return true;
}

static json_t *
text_array (const struct strv *v)
{
    json_t *array = json_array ();
    for (size_t i = 0; i < v->len; i++)
        json_array_append_new (array, json_string (v->items[i]));
    return array;
}

static json_t *
match_json (const struct pull_match *m)
{
    json_t *match = json_object ();
    json_set_string (match, "artifact", m->name);
    json_set_string (match, "runtime", m->role);
    if (m->description)
        json_set_string (match, "description", m->description);
    if (m->newest_fitting)
        json_set_string (match, "newest_fitting", m->newest_fitting);
    json_object_set_new (match, "versions", text_array (&m->versions));
    json_object_set_new (match, "held_in", text_array (&m->held_in));
    return match;
}

bool
pull_list (struct session *s, const char *pattern, struct cancel *cancel, struct buf *json,
           char **refusal)
{
    _cleanup_matches_ struct pull_matches found = { 0 };
    if (! pull_find (s, pattern, cancel, &found, refusal))
        return false;
    size_t shown = found.len < MATCHES_MAX ? found.len : MATCHES_MAX;
    json_t *matches = json_array ();
    for (size_t i = 0; i < shown; i++)
        json_array_append_new (matches, match_json (&found.items[i]));
    _cleanup_json_ json_t *answer = json_object ();
    json_object_set_new (answer, "matches", matches);
    json_object_set_new (answer, "notes", text_array (&found.notes));
    json_set_u64 (answer, "omitted", found.len - shown);
    json_set_string (answer, "pattern", pattern);
    json_append (json, answer, JSON_TEXT_SORTED);
    return true;
}
