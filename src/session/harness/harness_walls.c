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
    if (! is_public (file) && ! is_too_wide (dir) && ! strv_contains (&h->trees, dir))
        strv_push (&h->trees, dir);
}

/* The program itself and, for a script, what runs it. */
static void
add_program (struct harness *h, const char *path, unsigned hops)
{
    char real[PATH_MAX];
    if (hops > 4 || ! realpath (path, real))
        return;
    elf_closure (real, &h->closure);
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
    add_program (h, h->binary, 0);
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
