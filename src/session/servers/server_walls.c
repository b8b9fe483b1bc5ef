/* SPDX-License-Identifier: Apache-2.0
 *
 * What confines a server: a network of its own with its own allow list, a control group, its own
 * temporary, home and work folders, and an environment made from nothing.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "sandbox/host/host.h"
#include "sandbox/programs/elf_closure.h"
#include "session/commands/confine.h"
#include "session/commands/confine_etc.h"
#include "session/servers/server_internal.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

/* --- folders --- */

static bool
make_dir (const char *path, struct mur_error **err)
{
    return mkdir (path, 0700) == 0 || errno == EEXIST ||
           mur_fail_errno (err, E_IO_003, "cannot create %s", path);
}

static bool
make_folders (struct mcp_server *s, struct mur_error **err)
{
    struct server_walls *w = &s->walls;
    struct mount_folders *f = &w->spec.folders;
    const struct {
        const char *name;
        struct mount_folder *folder; /* NULL: files are written there */
    } folders[] = {
        { "tmp", &f->temp },        { "home", &f->home }, { "runtime", &f->runtime },
        { "records", &f->records }, { "etc", NULL },      { "work", &f->work },
    };
    if (! make_dir (s->setup.dir, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN (folders); i++) {
        bool is_given = folders[i].folder == &f->work && s->setup.work;
        const char *path = is_given
                               ? s->setup.work
                               : arena_printf (w->arena, "%s/%s", s->setup.dir, folders[i].name);
        if ((! is_given && ! make_dir (path, err)) ||
            (folders[i].folder && ! confine_name_folder (path, folders[i].folder, err)))
            return false;
    }
    const char *etc = arena_printf (w->arena, "%s/etc", s->setup.dir);
    f->protected = s->setup.protected;
    f->sealed_etc = confine_write_etc (w->arena, etc, f->home.path, err);
    return f->sealed_etc != NULL;
}

/* --- what its tree needs --- */

/* Extension modules are opened by their files, and what they are linked to lies with the host. */
static void
add_modules (struct server_walls *w)
{
    char *const roots[] = { (char *)(uintptr_t)w->tree, NULL };
    FTS *tree = fts_open (roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e; tree && (e = fts_read (tree));)
        if (e->fts_info == FTS_F &&
            (str_ends (e->fts_name, ".so") || str_ends (e->fts_name, ".node") ||
             strstr (e->fts_name, ".so.")))
            elf_closure (e->fts_path, &w->closure);
    if (tree)
        fts_close (tree);
}

/* --- limits and network --- */

static void
fill_limits (struct mcp_server *s)
{
    const struct cap_resources *r = &s->setup.resources;
    struct confinement_spec *spec = &s->walls.spec;
    spec->limits = (struct spawn_limits){ .max_processes = r->max_processes.value,
                                          .max_open_files = r->max_open_files.value,
                                          .max_file_size_bytes = r->max_file_size_bytes.value,
                                          .cpu_seconds = r->cpu_seconds.value,
                                          .memory_bytes = r->memory_bytes.value };
    spec->memory_is_declared = r->memory_bytes.is_set;
    spec->cgroup = (struct cgroup_limits){ .memory_bytes = r->cgroup_memory_bytes.value,
                                           .pids_max = r->cgroup_pids_max.value,
                                           .cpu_percent = r->cgroup_cpu_percent.value,
                                           .io_bytes_per_sec = r->cgroup_io_bytes_per_sec.value,
                                           .io_path = s->setup.dir };
    spec->cgroup_is_optional = s->setup.cgroup_is_optional;
}

static bool
fill_network (struct mcp_server *s, struct mur_error **err)
{
    struct server_walls *w = &s->walls;
    for (size_t i = 0; i < s->setup.reach.network.len; i++)
        if (! allow_list_add (&w->network, s->setup.reach.network.items[i], err))
            return false;
    char entry[40];
    snprintf (entry, sizeof entry, "http://127.0.0.1:%u", s->setup.gateway_port);
    if (s->setup.gateway_port && ! allow_list_add (&w->network, entry, err))
        return false;
    w->spec.network = &w->network;
    return true;
}

static bool
check_host (const struct mcp_server *s, struct mur_error **err)
{
    _cleanup_free_ char *blocker = host_probe_network_blocker (s->walls.spec.probe);
    return ! blocker || s->setup.space != SPACE_OWN ||
           mur_fail (err, E_CAP_005, "no network namespace can be made here for server %s: %s",
                     s->setup.name, blocker);
}

/* --- its program --- */

static bool
find_interpreter (struct mcp_server *s, struct mur_error **err)
{
    struct server_walls *w = &s->walls;
    const struct exec_allowlist *list = confinement_allowlist (w->confinement);
    const struct exec_name *n = exec_allowlist_find (list, s->setup.pinned->interpreter);
    if (! n || ! n->path) {
        mur_fail (err, E_MCP_001, "server %s is run by %s, which is not on PATH%s%s", s->setup.name,
                  s->setup.pinned->interpreter, list->lost.len ? ": " : "",
                  list->lost.len ? list->lost.items[0] : "");
        return mur_hint (err, "install %s", s->setup.pinned->interpreter);
    }
    w->path = n->unlinked ? n->unlinked : n->path;
    w->name = n->name;
    return true;
}

static void
fill_env (struct mcp_server *s)
{
    struct server_walls *w = &s->walls;
    const struct exec_allowlist *list = confinement_allowlist (w->confinement);
    strv_printf (&w->env, "PATH=%s", list->path ? list->path : "/usr/bin:/bin");
    strv_printf (&w->env, "HOME=%s", w->spec.folders.home.path);
    strv_push (&w->env, "LANG=C.UTF-8");
    const char *temp = confinement_temp_dir (w->confinement);
    if (strcmp (temp, "/tmp") != 0)
        strv_printf (&w->env, "TMPDIR=%s", temp);
    const char *const *proxy = confinement_proxy_env (w->confinement);
    for (size_t i = 0; proxy[i]; i++)
        strv_push (&w->env, proxy[i]);
    for (size_t i = 0; s->setup.env && s->setup.env[i]; i++)
        strv_push (&w->env, s->setup.env[i]);
}

static bool
make_walls (struct mcp_server *s, struct mur_error **err)
{
    struct server_walls *w = &s->walls;
    struct confinement_spec *spec = &w->spec;
    w->arena = arena_new ();
    if (s->setup.maker.prepare && ! s->setup.maker.prepare (s->setup.maker.ctx, &s->setup, err))
        return false;
    w->tree = s->setup.tree;
    const struct str_list *others = &s->setup.reach.programs;
    const char **programs = arena_new_array (w->arena, const char *, others->len + 2);
    struct confinement_tree *tree = arena_new0 (w->arena, struct confinement_tree);
    programs[0] = s->setup.pinned->interpreter;
    for (size_t i = 0; i < others->len; i++)
        programs[i + 1] = others->items[i];
    *tree = (struct confinement_tree){ w->tree, true, true };
    spec->session_id = s->setup.session_id;
    spec->tier = s->setup.tier;
    spec->probe = host_probe_once ();
    spec->shell_allow = programs;
    spec->path = getenv ("PATH");
    spec->space = s->setup.space;
    spec->trees = tree;
    spec->tree_count = 1;
    fill_limits (s);
    add_modules (w);
    if (! check_host (s, err) || ! fill_network (s, err) || ! make_folders (s, err) ||
        ! (w->confinement = confinement_new (spec, err)) || ! find_interpreter (s, err))
        return false;
    fill_env (s);
    return true;
}

bool
server_walls_make (struct mcp_server *s, struct mur_error **err)
{
    if (s->has_walls)
        return true;
    s->has_walls = make_walls (s, err);
    if (! s->has_walls)
        server_walls_free (&s->walls);
    return s->has_walls || mur_context (err, "server %s", s->setup.name);
}

void
server_walls_free (struct server_walls *w)
{
    confinement_free (w->confinement);
    allow_list_free (&w->network);
    strv_free (&w->closure);
    strv_free (&w->env);
    arena_free (w->arena);
    *w = (struct server_walls){ 0 };
}
