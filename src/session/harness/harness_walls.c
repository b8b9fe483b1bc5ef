/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_walls.h"

#include "base/alloc.h"
#include "home/paths.h"
#include "net/server/gateway_door.h"
#include "sandbox/programs/elf_closure.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/script.h"
#include "session/commands/confine.h"
#include "session/harness/bridge.h"
#include "session/harness/harness.h"
#include "session/harness/harness_gateway.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
harness_is_confined (const struct session *s)
{
    return s->rooms.harness && policy_confines_harness (s->policy);
}

/* --- what it is made of --- */

/* Read by every command already. */
static bool
is_public (const char *path)
{
    static const char *const roots[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", NULL };
    return path_is_below_any (path, roots);
}

/* A folder that holds more than a program would be a grant of everything in it. */
static bool
is_too_wide (const char *dir)
{
    static const char *const wide[] = { "/", "/home", "/root", "/tmp", "/var", "/opt", "/etc" };
    const char *home = getenv ("HOME");
    if (home && path_is_below_any (home, (const char *const[]){ dir, NULL }))
        return true;
    for (size_t i = 0; i < ARRAY_LEN (wide); i++)
        if (strcmp (dir, wide[i]) == 0)
            return true;
    return false;
}

/* The folder a program's files lie in: the node_modules around a package, else its own folder. */
static char *
package_folder (const char *file)
{
    static const char mark[] = "/node_modules/";
    const char *last = NULL;
    for (const char *at = file; (at = strstr (at, mark)); at++)
        last = at;
    if (last)
        return x_strndup (file, (size_t)(last - file) + sizeof mark - 2);
    const char *slash = strrchr (file, '/');
    return x_strndup (file, slash > file ? (size_t)(slash - file) : 1);
}

static void
add_tree (struct harness *h, const char *file)
{
    _cleanup_free_ char *dir = package_folder (file);
    const char *tree = is_too_wide (dir) ? file : dir; /* alone, where it lies among other things */
    if (! is_public (file))
        strv_push_once (&h->trees, tree);
}

/* A Python environment is found by the name of its interpreter, which is a link to another's. */
static void
add_environment (struct harness *h, const char *path)
{
    struct stat st;
    _cleanup_free_ char *bin =
        x_strndup (path, strrchr (path, '/') ? (size_t)(strrchr (path, '/') - path) : 0);
    char *slash = strrchr (bin, '/');
    if (! slash || slash == bin)
        return;
    *slash = '\0';
    _cleanup_free_ char *mark = x_asprintf ("%s/pyvenv.cfg", bin);
    if (stat (mark, &st) == 0 && ! is_public (bin) && ! is_too_wide (bin))
        strv_push_once (&h->trees, bin);
}

/* The program itself and, for a script, what runs it. */
static void
add_program (struct harness *h, const char *path, unsigned hops)
{
    char real[PATH_MAX];
    if (hops > 4 || ! realpath (path, real))
        return;
    elf_closure (real, &h->closure);
    add_environment (h, path);
    add_tree (h, real);
    _cleanup_strv_ struct strv interpreters = { 0 };
    script_interpreters (real, &interpreters);
    for (size_t i = 0; i < interpreters.len; i++) {
        const char *word = interpreters.items[i];
        _cleanup_free_ char *found =
            word[0] == '/' ? x_strdup (word) : exec_find_on_path (word, getenv ("PATH"));
        if (found)
            add_program (h, found, hops + 1);
    }
}

static void
add_all (struct strv *to, const struct strv *from)
{
    for (size_t i = 0; i < from->len; i++)
        strv_push_once (to, from->items[i]);
}

#define NAMES_MAX 4

/* The program's name, and those of interpreters its first line leaves to PATH. NULL-terminated. */
static void
names_of_program (const struct harness *h, const struct strv *interpreters,
                  const char *names[NAMES_MAX + 1])
{
    size_t len = 0;
    names[len++] = strrchr (h->binary, '/') + 1;
    for (size_t i = 0; i < interpreters->len && len < NAMES_MAX; i++)
        if (! strchr (interpreters->items[i], '/'))
            names[len++] = interpreters->items[i];
    names[len] = NULL;
}

/* A version manager's shim is not what runs: the folder of what does comes first on its PATH. */
static void
put_first (struct harness *h, const char *program)
{
    int len = (int)(strrchr (program, '/') - program);
    h->path_front =
        arena_printf (h->arena, "%s%.*s:", h->path_front ? h->path_front : "", len, program);
}

/* What commands of its names would be granted: the parts of interpreters, what is behind shims. */
static void
add_parts (struct session *s)
{
    struct harness *h = s->rooms.harness;
    const char *slash = strrchr (h->binary, '/'), *path = getenv ("PATH");
    const char *names[NAMES_MAX + 1], *const writable[] = { s->places.work_path, NULL };
    _cleanup_strv_ struct strv interpreters = { 0 };
    script_interpreters (h->binary, &interpreters);
    names_of_program (h, &interpreters, names);
    _cleanup_free_ char *places =
        x_asprintf ("%.*s:%s", (int)(slash - h->binary), h->binary, path ? path : "");
    struct exec_allowlist list;
    exec_allowlist_resolve (&list, names, places, writable, NULL);
    if (list.names[0].path)
        h->real_binary = arena_strdup (h->arena, list.names[0].path);
    for (size_t i = 1; i < list.name_count; i++)
        if (list.names[i].unlinked)
            put_first (h, list.names[i].unlinked);
    add_all (&h->closure, &list.files);
    add_all (&h->trees, &list.run_trees);
    add_all (&h->trees, &list.readable);
    exec_allowlist_free (&list);
}

/* --- its home --- */

const char *
harness_home (const struct session *s)
{
    return s->rooms.harness->home;
}

/* With the capsule's conversations, where the ids of its sessions are kept, too. */
static bool
make_home (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    if (! s->policy->record_store) {
        h->home = arena_printf (h->arena, "%s/home", s->places.dirs.records_path);
        return true;
    }
    _cleanup_free_ char *below =
        x_asprintf ("conversations/%s/harness-home", s->policy->record_store);
    _cleanup_close_ int fd = home_open_dir (below, err);
    if (fd < 0)
        return mur_context (err, "the home of harness %s", h->is.harness);
    _cleanup_free_ char *path = home_path_below (below, err);
    if (! path)
        return false;
    h->home = arena_strdup (h->arena, path);
    return true;
}

/* --- the whole --- */

bool
harness_walls_enter (struct session *s, struct mur_error **err)
{
    struct harness *h = s->rooms.harness;
    if (! h)
        return true;
    if (! make_home (s, err) || ! harness_gateway_open (s, err))
        return false;
    if (! harness_is_confined (s))
        return true;
    h->bridge_fd = bridge_listen (&h->bridge_port, err);
    if (h->bridge_fd < 0)
        return false;
    h->real_binary = h->binary;
    add_parts (s);
    add_program (h, h->real_binary, 0);
    if (! h->trees.items)
        h->trees.items = x_new_array (char *, 1);
    h->program = (struct confine_program){
        .trees = (const char *const *)h->trees.items,
        .home = h->home,
        .ports = { h->door ? (uint16_t)gateway_door_port (h->door) : 0, h->bridge_port },
    };
    confine_admit (s, &h->program);
    return true;
}
