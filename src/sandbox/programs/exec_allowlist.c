/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/exec_allowlist.h"

#include "base/alloc.h"
#include "fs/root.h"
#include "sandbox/programs/elf_closure.h"
#include "sandbox/programs/interpreters.h"
#include "sandbox/programs/link_chain.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipes.h"
#include "sandbox/programs/script.h"
#include "sandbox/programs/shims.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static bool
is_program (const char *candidate, char resolved[PATH_MAX])
{
    struct stat st;
    /* Most folders of a PATH have no such program: one look is less than the way to it. */
    return access (candidate, X_OK) == 0 && realpath (candidate, resolved) &&
           stat (resolved, &st) == 0 && S_ISREG (st.st_mode);
}

char *
exec_find_candidate (const char *name, const char *path)
{
    _cleanup_free_ char *dirs = x_strdup (path ? path : "");
    char *rest = dirs;
    for (char *dir; (dir = strsep (&rest, ":"));) {
        char resolved[PATH_MAX];
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", dir, name);
        if (dir[0] == '/' && is_program (candidate, resolved))
            return steal_ptr (&candidate);
    }
    return NULL;
}

char *
exec_find_on_path (const char *name, const char *path)
{
    char resolved[PATH_MAX];
    _cleanup_free_ char *candidate = exec_find_candidate (name, path);
    return candidate && is_program (candidate, resolved) ? x_strdup (resolved) : NULL;
}

/* What one resolution needs; `seen` keeps every program from being looked at twice. */
struct search {
    struct exec_allowlist *list;
    struct exec_name *owner; /* the listed name on whose behalf it is looked */
    struct strv dirs;        /* of PATH, where listed names are looked for */
    struct strv helper_dirs; /* and those beside them where helpers are */
    const char *const *writable_roots;
    struct strv seen;
    bool is_asked; /* its owner's programs may be run for their answers */
    bool is_own;   /* what is added next is the listed program itself: what runs its script */
};

/* The folders of a PATH that are there, each once: /bin is often a link to /usr/bin. What such a
 * link is stays known. */
static void
add_dirs (struct search *s, const char *path, struct strv *out)
{
    _cleanup_free_ char *dirs = x_strdup (path ? path : "");
    _cleanup_free_ struct stat *known = x_new_array (struct stat, strlen (dirs) + out->len + 1);
    for (size_t i = 0; i < out->len; i++)
        if (stat (out->items[i], &known[i]) < 0)
            known[i] = (struct stat){ 0 };
    char *rest = dirs;
    for (char *dir; (dir = strsep (&rest, ":"));) {
        struct stat *st = &known[out->len];
        if (dir[0] != '/' || stat (dir, st) < 0 || ! S_ISDIR (st->st_mode))
            continue;
        bool is_known = false;
        for (size_t i = 0; i < out->len && ! is_known; i++)
            is_known = known[i].st_ino == st->st_ino && known[i].st_dev == st->st_dev;
        if (is_known)
            link_chain_of (dir, &s->list->links);
        else
            strv_push (out, dir);
    }
}

static const char *
work_dir_of (const struct search *s)
{
    return s->writable_roots ? s->writable_roots[0] : NULL;
}

/* Commands look names up themselves: a version's own folder comes before the shims'. */
static void
put_before (struct exec_allowlist *list, const char *dir, const char *real)
{
    _cleanup_free_ char *wanted = x_strdup (real);
    *strrchr (wanted, '/') = '\0';
    _cleanup_free_ char *old = x_asprintf (":%s:", list->path);
    _cleanup_free_ char *pair = x_asprintf (":%s:%s:", wanted, dir);
    _cleanup_free_ char *shims = x_asprintf (":%s:", dir);
    char *at = strstr (old, shims);
    if (! at || strstr (old, pair))
        return;
    *at = '\0';
    free (list->path);
    list->path = x_asprintf ("%s:%s:%s", old[0] ? old + 1 : "", wanted, at + 1);
    size_t len = strlen (list->path);
    list->path[len - 1] = '\0';
    if (list->path[0] == ':')
        memmove (list->path, list->path + 1, len - 1);
}

static void add_program (struct search *s, const char *name, const char *candidate);

static bool
may_be_interpreter (const char *name)
{
    return str_starts (name, "python") || str_starts (name, "pypy") || str_starts (name, "perl");
}

/* A helper, by name or by path. Not found: it is not installed. */
static void
add_helper (void *ctx, const char *name)
{
    struct search *s = ctx;
    if (name[0] == '/') {
        add_program (s, strrchr (name, '/') + 1, name);
        return;
    }
    /* For one owner it is looked for once. */
    _cleanup_free_ char *key =
        x_asprintf ("%s for %s%s", name, s->owner->name, s->is_own ? "!" : "");
    if (strv_contains (&s->seen, key))
        return;
    strv_push (&s->seen, key);
    for (size_t i = 0; i < s->helper_dirs.len; i++) {
        char resolved[PATH_MAX];
        const char *dir = s->helper_dirs.items[i];
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", dir, name);
        if (! is_program (candidate, resolved))
            continue;
        _cleanup_free_ char *real = NULL, *why = NULL;
        enum shim_kind kind = shim_resolve (name, candidate, work_dir_of (s), &real, &why);
        if (kind == SHIM_PASSED || kind == SHIM_LOST)
            continue;
        if (kind == SHIM_RESOLVED)
            put_before (s->list, dir, real);
        add_program (s, name, kind == SHIM_RESOLVED ? real : candidate);
        /* Who looks for an interpreter looks at each. */
        if (! may_be_interpreter (name))
            return;
    }
}

/* What a script of a shell hands over to: a starter of one program is that program. */
static void
add_started (struct search *s, const char *script)
{
    _cleanup_strv_ struct strv started = { 0 };
    script_starts (script, &started);
    s->is_own = false;
    for (size_t i = 0; i < started.len; i++)
        add_helper (s, started.items[i]);
}

/* Grants a program with its parts: libraries, what a script is run by, its recipe. */
static void
add_program (struct search *s, const char *name, const char *candidate)
{
    char resolved[PATH_MAX];
    if (! is_program (candidate, resolved))
        return;
    bool is_own = s->is_own || str_eq (name, s->owner->name);
    s->is_own = false;
    link_chain_of (candidate, &s->list->links);
    bool is_new = ! strv_contains (&s->seen, resolved);
    strv_push_once (&s->seen, resolved);
    bool is_listed = s->owner->path && str_eq (s->owner->path, resolved);
    bool is_writable = path_is_below_any (resolved, s->writable_roots);
    if (is_new && (is_listed || ! is_writable))
        elf_closure (resolved, &s->list->files);
    if (is_writable || ! s->is_asked)
        return;
    const char *base = strrchr (resolved, '/') + 1;
    if (is_new && (is_listed || may_be_interpreter (base)))
        s->owner->is_interpreter |=
            interpreter_derive (s->list, s->owner, resolved, candidate, s->writable_roots) &&
            is_listed;
    struct strv interpreters = { 0 };
    if (is_new)
        script_interpreters (resolved, &interpreters);
    const struct recipe_use use = {
        .list = s->list,
        .owner = s->owner,
        .name = name,
        .program = resolved,
        /* A link in the work folder is the work's own word. */
        .candidate = path_is_below_any (candidate, s->writable_roots) ? resolved : candidate,
        .is_own = is_own,
        .is_shell_script = interpreters.len && script_is_shell (&interpreters),
        .add_helper = add_helper,
        .ctx = s
    };
    for (size_t i = 0; i < interpreters.len; i++) {
        s->is_own = is_own;
        add_helper (s, interpreters.items[i]);
    }
    if (is_own && use.is_shell_script)
        add_started (s, resolved);
    s->is_own = false;
    strv_free (&interpreters);
    /* A listed program may have run a listed script before: it is told of all the same. */
    const char *how = str_eq (name, s->owner->name) ? ", listed" : is_own ? ", running" : "";
    _cleanup_free_ char *key = x_asprintf ("%s as %s%s", candidate, name, how);
    if (! strv_contains (&s->seen, key)) {
        strv_push (&s->seen, key);
        recipes_apply (&use);
    }
}

/* One match of a listed name. */
static void
take_match (struct search *s, const char *dir, const char *candidate)
{
    struct exec_name *n = s->owner;
    char resolved[PATH_MAX];
    _cleanup_free_ char *real = NULL, *why = NULL;
    enum shim_kind kind = path_is_below_any (candidate, s->writable_roots)
                              ? SHIM_NONE
                              : shim_resolve (n->name, candidate, work_dir_of (s), &real, &why);
    if (kind == SHIM_PASSED)
        return;
    if (kind == SHIM_LOST) {
        if (! n->path)
            strv_push (&s->list->lost, why);
        return;
    }
    const char *found = kind == SHIM_RESOLVED ? real : candidate;
    if (! is_program (found, resolved))
        return;
    if (! n->path) {
        n->path = x_strdup (resolved);
        n->unlinked = x_strdup (found);
        if (kind == SHIM_RESOLVED)
            put_before (s->list, dir, real);
    }
    add_program (s, n->name, found);
}

/* Every executable regular file of this name on PATH. */
static void
resolve_name (struct search *s)
{
    for (size_t i = 0; i < s->dirs.len; i++) {
        char resolved[PATH_MAX];
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", s->dirs.items[i], s->owner->name);
        if (is_program (candidate, resolved))
            take_match (s, s->dirs.items[i], candidate);
    }
}

static bool
is_among (const char *name, const char *const *names)
{
    for (size_t i = 0; names && names[i]; i++)
        if (str_eq (names[i], name))
            return true;
    return false;
}

void
exec_allowlist_resolve (struct exec_allowlist *list, const char *const *names, const char *path,
                        const char *const *writable_roots, const char *const *unasked)
{
    *list = (struct exec_allowlist){ .path = x_strdup (path ? path : "") };
    static const char extra[] = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";
    struct search s = { .list = list, .writable_roots = writable_roots };
    add_dirs (&s, path, &s.dirs);
    add_dirs (&s, path, &s.helper_dirs);
    add_dirs (&s, extra, &s.helper_dirs);
    size_t count = 0;
    while (names && names[count])
        count++;
    list->names = x_new_array (struct exec_name, count);
    for (size_t i = 0; i < count; i++) {
        struct exec_name *n = &list->names[list->name_count++];
        n->name = x_strdup (names[i]);
        s.owner = n;
        s.is_asked = ! is_among (n->name, unasked);
        if (! strchr (n->name, '/'))
            resolve_name (&s);
    }
    strv_free (&s.dirs);
    strv_free (&s.helper_dirs);
    strv_free (&s.seen);
}

void
exec_allowlist_add_starters (struct exec_allowlist *list)
{
    static const char *const starters[] = { "/usr/bin/env", "/bin/sh" };
    char resolved[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN (starters); i++)
        if (is_program (starters[i], resolved))
            elf_closure (resolved, &list->files);
}

void
exec_allowlist_free (struct exec_allowlist *list)
{
    for (size_t i = 0; i < list->name_count; i++) {
        free (list->names[i].name);
        free (list->names[i].path);
        free (list->names[i].unlinked);
        strv_free (&list->names[i].derived);
        strv_free (&list->names[i].parts);
    }
    free (list->names);
    strv_free (&list->files);
    strv_free (&list->run_trees);
    strv_free (&list->links);
    strv_free (&list->asked);
    strv_free (&list->env);
    strv_free (&list->lost);
    free (list->path);
    strv_free (&list->readable);
    strv_free (&list->notes);
    *list = (struct exec_allowlist){ 0 };
}

const struct exec_name *
exec_allowlist_find (const struct exec_allowlist *list, const char *name)
{
    for (size_t i = 0; i < list->name_count; i++)
        if (str_eq (list->names[i].name, name))
            return &list->names[i];
    return NULL;
}
