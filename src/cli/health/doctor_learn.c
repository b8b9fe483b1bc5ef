/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/health/doctor_learn.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/observe.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipes.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is known before it ran, and what its run adds. */
struct lesson {
    const char *name;
    struct exec_allowlist known;
    struct strv public;
    struct strv allow; /* further names */
    struct strv dirs;  /* folders of helpers and data */
    struct strv left;  /* seen and not proposed */
};

static bool
is_within_any (const char *path, const struct strv *roots)
{
    for (size_t i = 0; i < roots->len; i++)
        if (fs_path_is_within (path, roots->items[i]))
            return true;
    return false;
}

static bool
is_known (const struct lesson *l, const char *path)
{
    return is_within_any (path, &l->known.files) || is_within_any (path, &l->known.run_trees) ||
           is_within_any (path, &l->known.readable) || is_within_any (path, &l->public);
}

/* The session's own, or no file of anybody. */
static bool
is_of_the_session (const char *path)
{
    static const char *const roots[] = { "/proc", "/dev", "/tmp", "/sys", "/run", NULL };
    _cleanup_free_ char *cwd = getcwd (NULL, 0);
    return path_is_below_any (path, roots) || (cwd && fs_path_is_within (path, cwd));
}

/* A person's own, or what encloses it: never proposed. */
static bool
is_private (const char *path)
{
    static const char *const secret[] = { "/etc/shadow", "/etc/gshadow",     "/etc/sudoers",
                                          "/etc/ssh",    "/etc/ssl/private", NULL };
    const char *home = getenv ("HOME");
    return path_is_below_any (path, secret) ||
           (home && home[0] == '/' && home[1] && fs_path_is_within (path, home)) ||
           (home && fs_path_is_within (home, path));
}

static char *
folder_of (const char *path)
{
    char *dir = x_strdup (path);
    char *slash = strrchr (dir, '/');
    if (slash && slash != dir)
        *slash = '\0';
    return dir;
}

/* Where many packages lie: the whole of it is no program's own. */
static bool
is_everybodys (const char *dir)
{
    static const char *const places[] = {
        "/",          "/etc",           "/usr",           "/usr/bin",
        "/usr/sbin",  "/usr/lib",       "/usr/libexec",   "/usr/local",
        "/usr/share", "/usr/local/bin", "/usr/local/lib", "/opt",
        "/var",       "/var/lib",       "/var/cache",     "/srv"
    };
    for (size_t i = 0; i < ARRAY_LEN (places); i++)
        if (str_eq (dir, places[i]))
            return true;
    return false;
}

static void
learn_started (struct lesson *l, const char *path)
{
    if (is_known (l, path) || is_of_the_session (path))
        return;
    const char *base = strrchr (path, '/') + 1;
    _cleanup_free_ char *on_path = exec_find_on_path (base, getenv ("PATH"));
    _cleanup_free_ char *dir = folder_of (path);
    if (str_eq (on_path, path))
        strv_push_once (&l->allow, base);
    else if (is_private (dir) || is_everybodys (dir))
        strv_push_once (&l->left, path);
    else
        strv_push_once (&l->dirs, dir);
}

static void
learn_read (struct lesson *l, const char *path)
{
    static const char *const hosts_own[] = { "/etc/passwd",        "/etc/group",       "/etc/hosts",
                                             "/etc/nsswitch.conf", "/etc/resolv.conf", NULL };
    struct stat st;
    bool is_folder = stat (path, &st) == 0 && S_ISDIR (st.st_mode);
    if (is_known (l, path) || is_of_the_session (path) || path_is_below_any (path, hosts_own) ||
        (is_folder && is_everybodys (path)))
        return;
    _cleanup_free_ char *dir = is_folder ? x_strdup (path) : folder_of (path);
    if (is_private (path) || is_private (dir) || is_everybodys (dir))
        strv_push_once (&l->left, path);
    else if (! is_within_any (dir, &l->dirs))
        strv_push_once (&l->dirs, dir);
}

static void
print (const struct lesson *l, const struct observation *o)
{
    _cleanup_buf_ struct buf out = { 0 };
    buf_printf (&out, "capabilities:\n  shell:\n    allow: [%s", l->name);
    for (size_t i = 0; i < l->allow.len; i++)
        buf_printf (&out, ", %s", l->allow.items[i]);
    buf_puts (&out, "]\n");
    if (l->dirs.len)
        buf_printf (&out, "    interpreter_runtime:\n      - binary: %s\n        dirs:\n", l->name);
    for (size_t i = 0; i < l->dirs.len; i++)
        buf_printf (&out, "          - {path: %s, list_dir: true}\n", l->dirs.items[i]);
    if (o->uses_unix_sockets)
        buf_puts (&out, "  network: {unix_sockets: true}\n");
    for (size_t i = 0; i < l->left.len; i++)
        buf_printf (&out, "# not proposed, it is private or of this machine alone: %s\n",
                    l->left.items[i]);
    if (o->is_cut)
        buf_puts (&out, "# it touched more files than are listed\n");
    diag_stdout_line ("%.*s", (int)(out.len - 1), out.data);
}

static void
lesson_free (struct lesson *l)
{
    exec_allowlist_free (&l->known);
    strv_free (&l->public);
    strv_free (&l->allow);
    strv_free (&l->dirs);
    strv_free (&l->left);
}

int
doctor_learn (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_value (args, "--learn");
    size_t count;
    const char *const *given = cli_positionals (args, "ARGS", &count);
    if (strchr (name, '/')) {
        mur_fail (err, E_IO_003, "--learn takes a program's name, as shell.allow does; got '%s'",
                  name);
        return CLI_FAILED;
    }
    const char *const names[] = { name, NULL };
    _cleanup_ (lesson_free) struct lesson l = { .name = name };
    exec_allowlist_resolve (&l.known, names, getenv ("PATH"), NULL, NULL);
    recipes_public (&l.public, &l.known.links);
    const struct exec_name *program = exec_allowlist_find (&l.known, name);
    if (! program || ! program->path) {
        mur_fail (err, E_IO_001, "%s is not on PATH", name);
        return CLI_FAILED;
    }
    char **argv = x_new_array (char *, count + 2);
    argv[0] = program->unlinked;
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = (char *)(uintptr_t)given[i];
    _cleanup_ (observation_free) struct observation seen = { 0 };
    bool is_seen = observe_run (argv, &seen, err);
    free (argv);
    if (! is_seen)
        return CLI_FAILED;
    for (size_t i = 0; i < seen.started.len; i++)
        learn_started (&l, seen.started.items[i]);
    for (size_t i = 0; i < seen.read.len; i++)
        learn_read (&l, seen.read.items[i]);
    if (seen.exit_code)
        diag_note ("%s ended with %d: what it did not come to is not in the block", name,
                   seen.exit_code);
    print (&l, &seen);
    return 0;
}
