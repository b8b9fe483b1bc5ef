/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/recipes.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/host_query.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipe_table.h"

#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what is a program's own --- */

static const char *
home_of_user (void)
{
    const struct passwd *user = getpwuid (getuid ());
    return user && user->pw_dir && user->pw_dir[0] == '/' && user->pw_dir[1] ? user->pw_dir : NULL;
}

static bool
has_component (const char *path, const char *word)
{
    _cleanup_free_ char *wanted = x_asprintf ("/%s/", word);
    return strstr (path, wanted) != NULL;
}

static bool
holds (const char *dir, const char *name)
{
    struct stat st;
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return stat (path, &st) == 0;
}

/* Where version managers put one version of one program; a folder with a mark of its own besides.
 */
static bool
is_a_version (const char *prefix)
{
    static const char *const words[] = { "versions", "toolchains", "installs",      "candidates",
                                         "tools",    "python",     "node-versions", "envs",
                                         "sdks",     "image" };
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        if (has_component (prefix, words[i]))
            return true;
    return holds (prefix, "pyvenv.cfg") || holds (prefix, "conda-meta");
}

char *
recipes_own_prefix (const char *program)
{
    static const char *const shared[] = { "/usr", "/usr/local", "/opt", "/snap", "/nix" };
    static const char *const packages[] = { "/usr", "/opt", "/snap", "/nix", NULL };
    _cleanup_free_ char *prefix = x_strdup (program);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr (prefix, '/');
        if (! slash)
            return NULL;
        *slash = '\0';
    }
    for (size_t i = 0; i < ARRAY_LEN (shared); i++)
        if (str_eq (prefix, shared[i]))
            return NULL;
    const char *homes[] = { getenv ("HOME"), home_of_user () };
    for (size_t i = 0; i < ARRAY_LEN (homes); i++)
        if (homes[i] && homes[i][0] == '/' && fs_path_is_within (homes[i], prefix))
            return NULL;
    bool is_own = prefix[0] && (path_is_below_any (prefix, packages) || is_a_version (prefix));
    return is_own ? steal_ptr (&prefix) : NULL;
}

/* --- granting --- */

static bool
is_folder (const char *path)
{
    struct stat st;
    return stat (path, &st) == 0 && S_ISDIR (st.st_mode);
}

static void
grant_read (struct exec_allowlist *list, const char *path)
{
    char resolved[PATH_MAX];
    if (realpath (path, resolved) && ! str_eq (resolved, "/"))
        strv_push_once (&list->readable, resolved);
}

static void
grant_run (struct exec_allowlist *list, const char *path)
{
    char resolved[PATH_MAX];
    if (realpath (path, resolved) && is_folder (resolved) && ! str_eq (resolved, "/") &&
        ! str_eq (resolved, "/usr") && ! str_eq (resolved, "/usr/bin"))
        strv_push_once (&list->run_trees, resolved);
}

static void
for_pattern (struct exec_allowlist *list, const char *pattern, const char *prefix,
             void (*grant) (struct exec_allowlist *, const char *))
{
    static const char mark[] = "{prefix}";
    bool is_own = str_starts (pattern, mark);
    if (is_own && ! prefix)
        return;
    _cleanup_free_ char *text =
        is_own ? x_asprintf ("%s%s", prefix, pattern + strlen (mark)) : x_strdup (pattern);
    glob_t found = { 0 };
    if (glob (text, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            grant (list, found.gl_pathv[i]);
    globfree (&found);
}

void
recipes_public (struct strv *out)
{
    struct exec_allowlist list = { 0 };
    for (size_t i = 0; recipe_public[i]; i++)
        for_pattern (&list, recipe_public[i], NULL, grant_read);
    for (size_t i = 0; i < list.readable.len; i++)
        strv_push (out, list.readable.items[i]);
    strv_free (&list.readable);
}

/* --- rules for every program --- */

static bool
is_package_root (const char *dir, const char *const *roots)
{
    for (size_t i = 0; roots[i]; i++)
        if (str_eq (dir, roots[i]))
            return true;
    return false;
}

/* Package folders named like it, the folder it lies in when that is no bin, and its version. */
static void
apply_rules (const struct recipe_use *use, const char *prefix)
{
    static const char *const places[] = { "/usr/lib", "/usr/libexec", "/usr/local/lib",
                                          "/usr/local/libexec" };
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", places[i], use->name);
        grant_run (use->list, path);
    }
    static const char *const packages[] = { "/usr/lib", "/usr/libexec", "/usr/local/lib", "/opt",
                                            NULL };
    _cleanup_free_ char *dir = x_strdup (use->program);
    *strrchr (dir, '/') = '\0';
    const char *base = strrchr (dir, '/') ? strrchr (dir, '/') + 1 : "";
    if (path_is_below_any (dir, packages) && ! is_package_root (dir, packages) &&
        ! str_eq (base, "bin") && ! str_eq (base, "sbin") &&
        ! strv_contains (&use->list->run_trees, dir))
        grant_run (use->list, dir);
    char *modules = strstr (dir, "/node_modules/");
    if (modules) {
        modules[strlen ("/node_modules")] = '\0';
        grant_read (use->list, dir);
    }
    if (! prefix)
        return;
    grant_read (use->list, prefix);
    static const char *const parts[] = { "lib", "lib64", "libexec" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", prefix, parts[i]);
        grant_run (use->list, path);
    }
}

/* --- one recipe --- */

static bool
is_for (const struct recipe *r, const char *name)
{
    for (size_t i = 0; r->programs[i]; i++)
        if (fnmatch (r->programs[i], name, 0) == 0)
            return true;
    return false;
}

static void
take_answer (const struct recipe_use *use, enum recipe_answer kind, char *path)
{
    if (kind == ANSWER_PROGRAM) {
        use->add_helper (use->ctx, path);
        return;
    }
    if (path[0] != '/')
        return;
    if (kind == ANSWER_READ_PARENT)
        *strrchr (path, '/') = '\0';
    if (kind == ANSWER_RUN_TREE)
        grant_run (use->list, path);
    else if (path[0])
        grant_read (use->list, path);
}

static void
ask (const struct recipe_use *use, const struct recipe_question *q)
{
    const char *argv[6] = { use->name, q->argv[0], q->argv[1], q->argv[2], NULL, NULL };
    _cleanup_buf_ struct buf output = { 0 };
    if (! host_query (use->candidate, argv, &output) || ! output.len)
        return;
    buf_append (&output, "", 0);
    for (size_t at = 0, next; at < output.len; at = next) {
        char *line = output.data + at;
        next = at + strlen (line) + 1;
        line[strcspn (line, "\r\n")] = '\0';
        if (*line)
            take_answer (use, q->answer, line);
    }
}

static void
apply (const struct recipe_use *use, const struct recipe *r, const char *prefix)
{
    use->list->needs_sockets |= r->needs_sockets && str_eq (use->name, use->owner->name);
    for (size_t i = 0; i < ARRAY_LEN (r->run) && r->run[i]; i++)
        for_pattern (use->list, r->run[i], prefix, grant_run);
    for (size_t i = 0; i < ARRAY_LEN (r->read) && r->read[i]; i++)
        for_pattern (use->list, r->read[i], prefix, grant_read);
    for (size_t i = 0; i < ARRAY_LEN (r->env) && r->env[i]; i++)
        strv_push_once (&use->list->env, r->env[i]);
    /* The members of a family in one folder (gcc, g++, cc) have the same answers. */
    _cleanup_free_ char *key = x_asprintf (
        "%s in %.*s", r->family, (int)(strrchr (use->program, '/') - use->program), use->program);
    bool is_asked = strv_contains (&use->list->asked, key);
    strv_push_once (&use->list->asked, key);
    for (size_t i = 0; ! is_asked && i < ARRAY_LEN (r->ask) && r->ask[i].answer; i++)
        ask (use, &r->ask[i]);
    for (size_t i = 0; i < ARRAY_LEN (r->helpers) && r->helpers[i]; i++) {
        bool is_shell = str_eq (r->helpers[i], "@shell");
        for (size_t n = 0; is_shell && recipe_shell[n]; n++)
            use->add_helper (use->ctx, recipe_shell[n]);
        if (! is_shell)
            use->add_helper (use->ctx, r->helpers[i]);
    }
}

/* What the report says of a listed name. */
static void
tell (const struct recipe_use *use, const struct recipe *r)
{
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (&line, "%s: with the parts of %s", use->name, r->family);
    for (size_t i = 0; i < ARRAY_LEN (r->helpers) && r->helpers[i]; i++)
        buf_printf (&line, "%s%s", i ? ", " : "; starts ",
                    str_eq (r->helpers[i], "@shell") ? "sh and the tools of shell scripts"
                                                     : r->helpers[i]);
    if (r->never)
        buf_printf (&line, "; never given: %s", r->never);
    strv_push_once (&use->owner->parts, line.data);
}

void
recipes_apply (const struct recipe_use *use)
{
    const char *base = strrchr (use->program, '/') + 1;
    _cleanup_free_ char *prefix = recipes_own_prefix (use->program);
    apply_rules (use, prefix);
    for (size_t i = 0; use->is_shell_script && recipe_shell[i]; i++)
        use->add_helper (use->ctx, recipe_shell[i]);
    for (unsigned i = 0; i < recipe_count; i++) {
        if (! is_for (&recipes[i], use->name) && ! is_for (&recipes[i], base))
            continue;
        if (str_eq (use->name, use->owner->name))
            tell (use, &recipes[i]);
        apply (use, &recipes[i], prefix);
    }
}
