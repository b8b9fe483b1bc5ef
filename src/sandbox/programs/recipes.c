/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/recipes.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/host_query.h"
#include "sandbox/programs/link_chain.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipe_table.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTINGS_MAX 200 /* files of one program's folder in /etc that are looked at */

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
    const char *name = strrchr (prefix, '/');
    for (const char *dot = name; dot && (dot = strchr (dot + 1, '.'));)
        if (isdigit ((unsigned char)dot[-1]) && isdigit ((unsigned char)dot[1]))
            return true; /* gradle-8.5, go1.21.3 */
    return holds (prefix, "pyvenv.cfg") || holds (prefix, "conda-meta");
}

/* Places many packages are put into, and what encloses a person's own files. */
static bool
is_shared (const char *prefix)
{
    static const char *const places[] = { "", "/usr", "/usr/local", "/opt", "/snap", "/nix" };
    for (size_t i = 0; i < ARRAY_LEN (places); i++)
        if (str_eq (prefix, places[i]))
            return true;
    const char *homes[] = { getenv ("HOME"), home_of_user () };
    for (size_t i = 0; i < ARRAY_LEN (homes); i++) {
        if (! homes[i] || homes[i][0] != '/')
            continue;
        _cleanup_free_ char *local = x_asprintf ("%s/.local", homes[i]);
        if (fs_path_is_within (homes[i], prefix) || str_eq (prefix, local))
            return true;
    }
    return false;
}

char *
recipes_own_prefix (const char *program)
{
    static const char *const packages[] = { "/usr", "/opt", "/snap", "/nix", NULL };
    _cleanup_free_ char *prefix = x_strdup (program);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr (prefix, '/');
        if (! slash)
            return NULL;
        *slash = '\0';
    }
    bool is_own =
        ! is_shared (prefix) && (path_is_below_any (prefix, packages) || is_a_version (prefix));
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
    if (! realpath (path, resolved) || str_eq (resolved, "/"))
        return;
    strv_push_once (&list->readable, resolved);
    link_chain_of (path, &list->links);
}

static void
grant_run (struct exec_allowlist *list, const char *path)
{
    char resolved[PATH_MAX];
    if (is_folder (path) && realpath (path, resolved) && ! str_eq (resolved, "/") &&
        ! str_eq (resolved, "/usr") && ! str_eq (resolved, "/usr/bin"))
        strv_push_once (&list->run_trees, resolved);
}

/* What a pattern of the table stands for here; owned, NULL: its place is not known. */
static char *
pattern_here (const char *pattern, const char *prefix, const char *bin)
{
    const struct {
        const char *mark, *value;
    } places[] = { { "{prefix}", prefix }, { "{bin}", bin } };
    for (size_t i = 0; i < ARRAY_LEN (places); i++)
        if (str_starts (pattern, places[i].mark))
            return places[i].value
                       ? x_asprintf ("%s%s", places[i].value, pattern + strlen (places[i].mark))
                       : NULL;
    return x_strdup (pattern);
}

static void
matches_of (const char *pattern, struct strv *out)
{
    glob_t found = { 0 };
    if (pattern && glob (pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            strv_push (out, found.gl_pathv[i]);
    globfree (&found);
}

void
recipes_public (struct strv *out, struct strv *links)
{
    struct exec_allowlist list = { 0 };
    _cleanup_strv_ struct strv found = { 0 };
    for (size_t i = 0; recipe_public[i]; i++)
        matches_of (recipe_public[i], &found);
    for (size_t i = 0; i < found.len; i++)
        grant_read (&list, found.items[i]);
    for (size_t i = 0; i < list.readable.len; i++)
        strv_push (out, list.readable.items[i]);
    for (size_t i = 0; i < list.links.len; i++)
        strv_push (links, list.links.items[i]);
    strv_free (&list.readable);
    strv_free (&list.links);
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

/* /usr/lib/swi-prolog of /usr/lib/swi-prolog/bin/x86_64-linux; one further below a machine's own
 * folder. What lies in /opt is a vendor's, who may have several. Owned. */
static char *
package_of (const char *dir, const char *const *roots)
{
    for (size_t i = 0; roots[i]; i++) {
        size_t len = strlen (roots[i]);
        if (str_eq (roots[i], "/opt") || strncmp (dir, roots[i], len) != 0 || dir[len] != '/')
            continue;
        size_t end = len + 1 + strcspn (dir + len + 1, "/");
        const char *triplet = strstr (dir + len, "-linux-gnu");
        if (dir[end] && triplet && triplet < dir + end)
            end += 1 + strcspn (dir + end + 1, "/");
        return x_strndup (dir, end);
    }
    return x_strdup (dir);
}

/* A version's folder, or a virtual environment: what lies there is its own. */
static void
grant_prefix (struct exec_allowlist *list, const char *prefix)
{
    static const char *const parts[] = { "lib", "lib64", "libexec" };
    grant_read (list, prefix);
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", prefix, parts[i]);
        grant_run (list, path);
    }
}

/* Beside the bin it lies in: libraries, helpers and data, wherever the package was unpacked. */
static void
grant_siblings (struct exec_allowlist *list, const char *bin)
{
    _cleanup_free_ char *above = x_strndup (bin, (size_t)(strrchr (bin, '/') - bin));
    _cleanup_free_ char *lib = x_asprintf ("%s/lib", above);
    _cleanup_free_ char *libexec = x_asprintf ("%s/libexec", above);
    _cleanup_free_ char *share = x_asprintf ("%s/share", above);
    if (is_shared (above))
        return;
    grant_run (list, lib);
    grant_run (list, libexec);
    if (is_folder (share))
        grant_read (list, share);
}

/* A script of a package of node: what is installed beside it are its parts, programs made for this
 * machine among them. */
static void
grant_node_package (struct exec_allowlist *list, const char *dir)
{
    static const char mark[] = "/node_modules/";
    const char *modules = strstr (dir, mark);
    if (! modules)
        return;
    _cleanup_free_ char *all = x_strndup (dir, (size_t)(modules - dir) + strlen (mark) - 1);
    grant_run (list, all);
}

/* Settings of this machine for it, as far as everybody may read them: a file with a password is
 * not, and a folder that holds one is none of ours. */
static bool
is_public_tree (int dir_fd, const char *name, unsigned *left)
{
    struct stat st;
    if (! *left || fstatat (dir_fd, name, &st, 0) < 0)
        return false;
    --*left;
    if (S_ISREG (st.st_mode))
        return st.st_mode & S_IROTH;
    if (! S_ISDIR (st.st_mode) || (st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
        return false;
    int fd = openat (dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    bool is_public = dir != NULL;
    for (struct dirent *e; is_public && (e = readdir (dir));)
        if (! str_eq (e->d_name, ".") && ! str_eq (e->d_name, ".."))
            is_public = is_public_tree (dirfd (dir), e->d_name, left);
    return is_public;
}

static void
grant_settings (const struct recipe_use *use)
{
    static const char *const forms[] = { "", "rc", ".conf", ".d" };
    for (size_t i = 0; i < ARRAY_LEN (forms); i++) {
        _cleanup_free_ char *path = x_asprintf ("/etc/%s%s", use->name, forms[i]);
        unsigned left = SETTINGS_MAX;
        if (is_public_tree (AT_FDCWD, path, &left))
            grant_read (use->list, path);
    }
}

/* Files that a package's folder keeps elsewhere, by links directly inside it. */
static void
grant_linked (struct exec_allowlist *list, const char *path)
{
    _cleanup_closedir_ DIR *dir = opendir (path);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        char target[PATH_MAX];
        struct stat st;
        _cleanup_free_ char *link = x_asprintf ("%s/%s", path, e->d_name);
        if (e->d_type != DT_LNK || ! realpath (link, target) || str_starts (target, "/usr/") ||
            stat (target, &st) < 0 || ! S_ISREG (st.st_mode) || ! (st.st_mode & S_IROTH))
            continue;
        strv_push_once (&list->readable, target);
    }
}

/* What a starter of this name starts, in its own folder: /usr/bin/valgrind, /usr/bin/valgrind.bin.
 */
static void
add_inner_programs (const struct recipe_use *use)
{
    static const char *const forms[] = { "%s.bin", "%s-bin", "%s.real", "%s.distrib" };
    for (size_t i = 0; i < ARRAY_LEN (forms); i++) {
        char path[PATH_MAX];
        if (snprintf (path, sizeof path, forms[i], use->program) < (int)sizeof path)
            use->add_helper (use->ctx, path);
    }
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
        grant_linked (use->list, path);
    }
    if (use->is_own) {
        grant_settings (use);
        add_inner_programs (use);
    }
    static const char *const packages[] = { "/usr/lib", "/usr/libexec", "/usr/local/lib", "/opt",
                                            NULL };
    _cleanup_free_ char *dir = x_strdup (use->program);
    *strrchr (dir, '/') = '\0';
    const char *base = strrchr (dir, '/') ? strrchr (dir, '/') + 1 : "";
    bool is_package = path_is_below_any (dir, packages) && ! is_package_root (dir, packages) &&
                      ! str_eq (base, "bin") && ! str_eq (base, "sbin");
    bool is_own_libexec = str_eq (base, "libexec") && ! str_starts (dir, "/usr/");
    _cleanup_free_ char *package = is_package ? package_of (dir, packages) : x_strdup (dir);
    if ((is_package || is_own_libexec) && ! strv_contains (&use->list->run_trees, package))
        grant_run (use->list, package);
    if (str_eq (base, "bin"))
        grant_siblings (use->list, dir);
    grant_node_package (use->list, dir);
    if (prefix)
        grant_prefix (use->list, prefix);
    /* The interpreter of a virtual environment is a link out of it. */
    _cleanup_free_ char *environment = recipes_own_prefix (use->candidate);
    if (environment)
        grant_prefix (use->list, environment);
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
apply_places (const struct recipe_use *use, const struct recipe *r, const char *prefix)
{
    _cleanup_free_ char *bin = x_strdup (use->candidate);
    *strrchr (bin, '/') = '\0';
    _cleanup_strv_ struct strv run = { 0 }, read = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (r->run) && r->run[i]; i++) {
        _cleanup_free_ char *pattern = pattern_here (r->run[i], prefix, bin);
        matches_of (pattern, &run);
    }
    for (size_t i = 0; i < ARRAY_LEN (r->read) && r->read[i]; i++) {
        _cleanup_free_ char *pattern = pattern_here (r->read[i], prefix, bin);
        matches_of (pattern, &read);
    }
    for (size_t i = 0; i < run.len; i++)
        if (is_folder (run.items[i]))
            grant_run (use->list, run.items[i]);
        else
            use->add_helper (use->ctx, run.items[i]);
    for (size_t i = 0; i < read.len; i++)
        grant_read (use->list, read.items[i]);
}

static void
apply (const struct recipe_use *use, const struct recipe *r, const char *prefix)
{
    if (use->is_own) {
        if (r->sockets > use->list->sockets)
            use->list->sockets = r->sockets;
        use->list->reads_interfaces |= r->reads_interfaces;
    }
    apply_places (use, r, prefix);
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
