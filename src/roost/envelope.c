/* SPDX-License-Identifier: Apache-2.0
 *
 * The envelope check. The axes are a table; their order is the order of refusal.
 */
#include "roost/envelope.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "net/allow.h"

#include <string.h>

typedef bool axis_fn (const char *key, const struct capsule_manifest *parent,
                      const struct capsule_manifest *child, struct mur_error **err);

static const struct str_list no_entries;

#define LIST(m, block, field)                                                                      \
    ((m)->capabilities->block ? &(m)->capabilities->block->field : &no_entries)
#define FLAG(m, block, field) ((m)->capabilities->block && (m)->capabilities->block->field.value)

static bool
refuse (const char *key, const char *entry, struct mur_error **err)
{
    return mur_fail (err, E_RUN_007,
                     "%s: the child's entry \"%s\" is not within what its parent holds", key,
                     entry);
}

static bool
is_subset (const char *key, const struct str_list *parent, const struct str_list *child,
           struct mur_error **err)
{
    for (size_t i = 0; i < child->len; i++)
        if (! str_list_has (parent, child->items[i]))
            return refuse (key, child->items[i], err);
    return true;
}

/* What cannot be parsed covers nothing and is covered by nothing. */
static bool
hosts_fit (const char *key, const struct str_list *parent, const struct str_list *child,
           struct mur_error **err)
{
    _cleanup_allow_list_ struct allow_list ceiling = { 0 };
    bool fits = true;
    for (size_t i = 0; i < parent->len; i++)
        allow_list_add (&ceiling, parent->items[i], NULL);
    for (size_t i = 0; i < child->len && fits; i++) {
        _cleanup_allow_list_ struct allow_list one = { 0 };
        fits = allow_list_add (&one, child->items[i], NULL) &&
               allow_list_covers (&ceiling, &one.rules[0]);
        if (! fits)
            refuse (key, child->items[i], err);
    }
    return fits;
}

static bool
flag_fits (const char *key, bool parent, bool child, struct mur_error **err)
{
    return parent || ! child || refuse (key, "true", err);
}

static bool
axis_network (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
              struct mur_error **err)
{
    return hosts_fit (key, LIST (p, network, allow), LIST (c, network, allow), err);
}

static bool
axis_unix_sockets (const char *key, const struct capsule_manifest *p,
                   const struct capsule_manifest *c, struct mur_error **err)
{
    return flag_fits (key, FLAG (p, network, unix_sockets), FLAG (c, network, unix_sockets), err);
}

static bool
axis_host_sockets (const char *key, const struct capsule_manifest *p,
                   const struct capsule_manifest *c, struct mur_error **err)
{
    return is_subset (key, LIST (p, network, host_sockets), LIST (c, network, host_sockets), err);
}

static bool
axis_peer_fetch (const char *key, const struct capsule_manifest *p,
                 const struct capsule_manifest *c, struct mur_error **err)
{
    return hosts_fit (key, LIST (p, peer_fetch, allow), LIST (c, peer_fetch, allow), err);
}

static bool
axis_shell (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
            struct mur_error **err)
{
    return is_subset (key, LIST (p, shell, allow), LIST (c, shell, allow), err);
}

static bool
axis_spawn (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
            struct mur_error **err)
{
    return is_subset (key, LIST (p, spawn, allow), LIST (c, spawn, allow), err);
}

static bool
axis_env (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
          struct mur_error **err)
{
    return is_subset (key, LIST (p, env, allow), LIST (c, env, allow), err);
}

/* Resolved components joined by '/': "a/../a/b" is "a/b", "." is "". NULL for one that leaves the
 * folder. */
static char *
resolve_scope (const char *scope)
{
    _cleanup_free_ char *text = x_strdup (scope);
    struct strv parts = { 0 };
    char *rest = text;
    bool leaves = scope[0] == '/';
    for (char *part; (part = strsep (&rest, "/"));) {
        if (! *part || str_eq (part, "."))
            continue;
        if (! str_eq (part, ".."))
            strv_push (&parts, part);
        else if (parts.len)
            free (parts.items[--parts.len]);
        else
            leaves = true;
    }
    char *joined = leaves ? NULL : strv_join (&parts, "/");
    strv_free (&parts);
    return joined;
}

static bool
axis_scope (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
            struct mur_error **err)
{
    const struct cap_filesystem *pf = p->capabilities->filesystem,
                                *cf = c->capabilities->filesystem;
    if (! pf || ! pf->scope)
        return true;
    if (! cf || ! cf->scope)
        return refuse (key, "(not set)", err);
    _cleanup_free_ char *outer = resolve_scope (pf->scope);
    _cleanup_free_ char *inner = resolve_scope (cf->scope);
    size_t len = outer ? strlen (outer) : 0;
    bool fits = outer && inner &&
                (len == 0 ||
                 (strncmp (inner, outer, len) == 0 && (inner[len] == '\0' || inner[len] == '/')));
    return fits || refuse (key, cf->scope, err);
}

static bool
axis_workdir_exec (const char *key, const struct capsule_manifest *p,
                   const struct capsule_manifest *c, struct mur_error **err)
{
    /* What a child may do with walls does not exceed a parent that may do it without. */
    uint64_t parent = FLAG (p, filesystem, workdir_exec),
             child = FLAG (c, filesystem, workdir_exec);
    bool fits = child == WORKDIR_EXEC_NONE || parent == WORKDIR_EXEC_OPEN || parent == child;
    return fits || refuse (key, child == WORKDIR_EXEC_WALLED ? "walled" : "true", err);
}

/* The store an entry opens, NULL when it opens none. */
static const char *
store_of (const struct capsule_manifest *m, const struct artifact_entry *e)
{
    const struct cap_state *state = e->capabilities ? e->capabilities->state : NULL;
    return ! state ? NULL : state->store ? state->store : m->name;
}

static bool
axis_state (const char *key, const struct capsule_manifest *p, const struct capsule_manifest *c,
            struct mur_error **err)
{
    for (size_t i = 0; i < c->artifacts.len; i++) {
        const char *store = store_of (c, &c->artifacts.items[i]);
        bool is_held = ! store;
        for (size_t n = 0; n < p->artifacts.len && ! is_held; n++)
            is_held = store_of (p, &p->artifacts.items[n]) &&
                      str_eq (store_of (p, &p->artifacts.items[n]), store);
        if (! is_held)
            return refuse (key, store, err);
    }
    return true;
}

static bool
patterns_fit (const char *key, const struct str_list *parent, const struct str_list *child,
              struct mur_error **err)
{
    for (size_t i = 0; i < child->len; i++) {
        bool is_covered = false;
        for (size_t n = 0; n < parent->len && ! is_covered; n++)
            is_covered = pattern_covers (parent->items[n], child->items[i]);
        if (! is_covered)
            return refuse (key, child->items[i], err);
    }
    return true;
}

static bool
axis_install_skill (const char *key, const struct capsule_manifest *p,
                    const struct capsule_manifest *c, struct mur_error **err)
{
    return patterns_fit (key, LIST (p, install, skill), LIST (c, install, skill), err);
}

static bool
axis_install_tool (const char *key, const struct capsule_manifest *p,
                   const struct capsule_manifest *c, struct mur_error **err)
{
    return patterns_fit (key, LIST (p, install, tool), LIST (c, install, tool), err);
}

static bool
axis_install_from (const char *key, const struct capsule_manifest *p,
                   const struct capsule_manifest *c, struct mur_error **err)
{
    return ! str_list_has (LIST (c, install, from), "sources") ||
           str_list_has (LIST (p, install, from), "sources") || refuse (key, "sources", err);
}

static bool
axis_containment (const char *key, const struct capsule_manifest *p,
                  const struct capsule_manifest *c, struct mur_error **err)
{
    return c->capabilities->containment >= p->capabilities->containment ||
           refuse (key,
                   c->capabilities->written_containment ? c->capabilities->written_containment
                                                        : "(not set)",
                   err);
}

static const struct {
    const char *key;
    axis_fn *fits;
} axes[] = {
    { "capabilities.network.allow", axis_network },
    { "capabilities.network.unix_sockets", axis_unix_sockets },
    { "capabilities.network.host_sockets", axis_host_sockets },
    { "capabilities.peer_fetch.allow", axis_peer_fetch },
    { "capabilities.shell.allow", axis_shell },
    { "capabilities.spawn.allow", axis_spawn },
    { "capabilities.env.allow", axis_env },
    { "capabilities.filesystem.scope", axis_scope },
    { "capabilities.filesystem.workdir_exec", axis_workdir_exec },
    { "capabilities.state.store", axis_state },
    { "capabilities.install.skill", axis_install_skill },
    { "capabilities.install.tool", axis_install_tool },
    { "capabilities.install.from", axis_install_from },
    { "capabilities.containment", axis_containment },
};

bool
envelope_check (const struct capsule_manifest *parent, const struct capsule_manifest *child,
                struct mur_error **err)
{
    for (size_t i = 0; i < ARRAY_LEN (axes); i++)
        if (! axes[i].fits (axes[i].key, parent, child, err))
            return false;
    return true;
}
