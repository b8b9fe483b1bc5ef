/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration entries turned into sources (spec/artifacts.md 8).
 */
#include "artifact/sources/source_list.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "manifest/settings/config.h"
#include "net/oci/oci_ref.h"

#include <ctype.h>
#include <string.h>

static const char default_owner[] = "murmur-nexus";
static const char default_repo[] = "default-artifacts";

struct secret *
source_default_token (void)
{
    const char *text = getenv ("GITHUB_TOKEN");
    if (! text)
        return NULL;
    text += strspn (text, " \t\r\n");
    size_t len = strlen (text);
    while (len && isspace ((unsigned char)text[len - 1]))
        len--;
    return len ? secret_new (text, len) : NULL;
}

static void
source_clear (struct source *s)
{
    free (s->scope);
    free (s->owner);
    free (s->repo);
    free (s->oci);
    if (s->token)
        secret_free (s->token);
}

void
source_list_free (struct source_list *l)
{
    for (size_t i = 0; i < l->len; i++)
        source_clear (&l->items[i]);
    free (l->items);
    strv_free (&l->plain_http);
    free (l);
}

DEFINE_CLEANUP (struct source_list, source_list_free)

/* --- one entry --- */

/* Where an entry stands, for messages: its place among the entries of its own file. */
static size_t
index_in_file (const struct config *c, size_t at)
{
    size_t index = 0;
    for (size_t i = 0; i < at; i++)
        index += strcmp (c->sources[i].file, c->sources[at].file) == 0;
    return index;
}

static bool
is_part (const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] <= 0x20 || s[i] == 0x7f)
            return false;
    return len > 0;
}

/* A registry's place: its scope is what it says, else the last part of the path. */
static bool
read_registry_entry (const struct config_source *from, size_t index, struct source *out,
                     struct mur_error **err)
{
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    if (from->repo[0] || from->token)
        return mur_fail (err, E_CFG_003,
                         "%s: registry.sources[%zu]: an entry with `oci` has no `repo` and no "
                         "`token`; a registry's credentials are docker's",
                         from->file, index);
    if (! oci_ref_parse (from->oci, &ref, err) || ref.tag || ref.digest) {
        if (ref.tag || ref.digest)
            mur_fail (err, E_CFG_003, "\"%s\" names one package", from->oci);
        else if (err && *err)
            (*err)->code = E_CFG_003;
        return mur_context (err, "%s: registry.sources[%zu].oci", from->file, index);
    }
    const char *slash = strrchr (ref.repository, '/');
    const char *scope = from->scope[0] ? from->scope : slash ? slash + 1 : ref.repository;
    out->scope = name_scope_of_owner (scope, NULL, E_CFG_003, err);
    if (! out->scope)
        return mur_context (err, "%s: registry.sources[%zu].scope", from->file, index);
    out->oci = x_asprintf ("%s/%s", ref.host, ref.repository);
    return true;
}

static bool
read_entry (const struct config *c, size_t at, struct source *out, struct mur_error **err)
{
    const struct config_source *from = &c->sources[at];
    size_t index = index_in_file (c, at);
    if (from->removed_key)
        return mur_fail (
            err, E_CFG_003,
            "%s: registry.sources[%zu]: the key `%s` was removed; an entry has `repo` and "
            "`token`",
            from->file, index, from->removed_key);
    if (from->oci[0])
        return read_registry_entry (from, index, out, err);
    const char *slash = strchr (from->repo, '/');
    size_t owner_len = slash ? (size_t)(slash - from->repo) : 0;
    if (! slash || strchr (slash + 1, '/') || ! is_part (from->repo, owner_len) ||
        ! is_part (slash + 1, strlen (slash + 1)))
        return mur_fail (err, E_CFG_003,
                         "%s: registry.sources[%zu].repo: \"%s\" is not <owner>/<repo>", from->file,
                         index, from->repo);
    out->owner = x_strndup (from->repo, owner_len);
    out->repo = x_strdup (slash + 1);
    out->scope = name_scope_of_owner (out->owner, out->repo, E_CFG_003, err);
    if (! out->scope)
        return mur_context (err, "%s: registry.sources[%zu].repo", from->file, index);
    out->token = config_source_token (from);
    return true;
}

static struct source *
find (struct source_list *l, const char *scope)
{
    for (size_t i = 0; i < l->len; i++)
        if (strcmp (l->items[i].scope, scope) == 0)
            return &l->items[i];
    return NULL;
}

/* Two entries of one file may not serve one scope; the project's entry replaces the global one. */
static bool
check_twice (const struct config *c, const size_t *origin, size_t first, size_t second,
             const char *scope, struct mur_error **err)
{
    const struct config_source *a = &c->sources[origin[first]], *b = &c->sources[second];
    return strcmp (a->file, b->file) != 0 ||
           mur_fail (err, E_CFG_003, "%s: registry.sources: %s and %s both serve the scope \"%s\"",
                     a->file, a->oci[0] ? a->oci : a->repo, b->oci[0] ? b->oci : b->repo, scope);
}

static bool
add_entry (struct source_list *l, const struct config *c, size_t *origin, size_t at,
           struct mur_error **err)
{
    struct source s = { 0 };
    if (! read_entry (c, at, &s, err)) {
        source_clear (&s);
        return false;
    }
    struct source *there = find (l, s.scope);
    bool is_builtin = strcmp (s.scope, SCOPE_MURMUR) == 0;
    size_t place = there ? (size_t)(there - l->items) : l->len;
    bool was_configured = there && origin[place] != SIZE_MAX;
    if (was_configured && ! check_twice (c, origin, place, at, s.scope, err)) {
        source_clear (&s);
        return false;
    }
    origin[place] = at;
    if (is_builtin) {
        /* Such an entry only lends its token. */
        if (there->token)
            secret_free (there->token);
        there->token = steal_ptr (&s.token);
        source_clear (&s);
    } else if (there) {
        source_clear (there);
        *there = s;
    } else {
        l->items[l->len++] = s;
    }
    return true;
}

struct source_list *
source_list_load (struct mur_error **err)
{
    _cleanup_config_ struct config *c = config_load (err);
    if (! c)
        return NULL;
    if (c->default_file) {
        mur_fail (err, E_CFG_003, "%s: the key `registry.default` was removed", c->default_file);
        return mur_hint (err, "an artifact's scope names its source; drop the key"), NULL;
    }
    _cleanup_ (source_list_freep) struct source_list *l = x_new0 (struct source_list);
    l->items = x_new_array (struct source, c->source_count + 1);
    l->items[l->len++] = (struct source){ .scope = x_strdup (SCOPE_MURMUR),
                                          .owner = x_strdup (default_owner),
                                          .repo = x_strdup (default_repo) };
    for (size_t i = 0; i < c->plain_http.len; i++)
        strv_push (&l->plain_http, c->plain_http.items[i]);
    _cleanup_free_ size_t *origin = x_new_array (size_t, c->source_count + 1);
    for (size_t i = 0; i <= c->source_count; i++)
        origin[i] = SIZE_MAX;
    for (size_t i = 0; i < c->source_count; i++)
        if (! add_entry (l, c, origin, i, err))
            return NULL;
    for (size_t i = 0; i < l->len; i++)
        if (! l->items[i].token && ! l->items[i].oci)
            l->items[i].token = source_default_token ();
    return steal_ptr (&l);
}
