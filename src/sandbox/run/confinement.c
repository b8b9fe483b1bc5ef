/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/confinement.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/kernel/host_sockets.h"
#include "sandbox/kernel/open_files.h"
#include "sandbox/kernel/user_threads.h"
#include "sandbox/kernel/watcher.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipes.h"
#include "sandbox/programs/trust_store.h"
#include "sandbox/run/launcher.h"
#include "sandbox/run/network_refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct confinement {
    const struct confinement_spec *spec;
    struct arena *arena;
    struct exec_allowlist allowlist;
    struct strv trust_store;
    struct strv public; /* what every program may read */
    struct syscall_filter filter;
    struct landlock_plan landlock;
    struct mount_plan mounts;
    struct cgroup_scope *scope;
    struct group_watcher *watcher; /* NULL without a scope */
    struct launcher *launcher;     /* NULL: commands are started where they are asked for */
    char *cgroup_shortfall;
    pthread_mutex_t lock; /* guards namespaces, is_ended and the occupancy */
    struct session_namespaces namespaces;
    struct egress *egress; /* NULL while no rule needs it */
    uint16_t ports[NETWORK_NAMESPACE_MAX_PORTS];
    uint16_t proxy_port; /* of the relay without namespaces; 0: nothing leaves */
    int *given_fds;      /* listeners the relay gives sockets by */
    size_t given_len, given_cap;
    bool has_namespaces;
    bool is_ended;
    uint64_t running;
    uint64_t entries;
};

/* Below sealed, too, once commands have unix sockets: the kernel asks nobody who connects to one
 * by its path, so those of the host must not be there. */
static bool
wants_root (const struct confinement *c)
{
    const struct confinement_spec *s = c->spec;
    if (s->space != SPACE_OWN)
        return false;
    return s->tier == CONFINEMENT_SEALED ||
           (s->tier == CONFINEMENT_LANDLOCK && s->probe->sealed.state == PROBE_SUCCEEDED &&
            (s->allows_unix_sockets || c->allowlist.sockets == SOCKETS_WITH_A_ROOT));
}

/* Asked for; and without asking where a program needs sockets of its own and none of the host is
 * there to be reached. */
bool
confinement_has_sockets (const struct confinement *c)
{
    return c->spec->allows_unix_sockets || (c->allowlist.sockets != SOCKETS_NONE && wants_root (c));
}

/* --- Landlock --- */

static bool
grant_folders (struct confinement *c, struct mur_error **err)
{
    const struct mount_folders *f = &c->spec->folders;
    const struct {
        const char *path;
        enum landlock_grant grant;
    } folders[] = {
        { f->work.path, LANDLOCK_WRITABLE_TREE },    { f->temp.path, LANDLOCK_WRITABLE_TREE },
        { f->home.path, LANDLOCK_WRITABLE_TREE },    { f->runtime.path, LANDLOCK_READABLE_TREE },
        { f->records.path, LANDLOCK_READABLE_TREE },
    };
    for (size_t i = 0; i < ARRAY_LEN (folders); i++)
        if (! landlock_plan_add (&c->landlock, folders[i].path, folders[i].grant,
                                 c->spec->workdir_exec, true, err))
            return false;
    for (size_t i = 0; i < ARRAY_LEN (folders) && confinement_has_sockets (c); i++)
        if (folders[i].grant == LANDLOCK_WRITABLE_TREE)
            landlock_plan_add (&c->landlock, folders[i].path, LANDLOCK_SOCKETS, false, false, NULL);
    return true;
}

static void
grant (struct confinement *c, const char *path, enum landlock_grant g)
{
    landlock_plan_add (&c->landlock, path, g, false, false, NULL);
}

static void
grant_all (struct confinement *c, const struct strv *paths, enum landlock_grant g)
{
    for (size_t i = 0; i < paths->len; i++)
        grant (c, paths->items[i], g);
}

/* What lies where commands may write is no program, whatever PATH says of it. */
static void
grant_programs (struct confinement *c)
{
    const struct mount_folders *f = &c->spec->folders;
    const char *writable[] = { f->work.path, f->records.path, NULL };
    for (size_t i = 0; i < c->allowlist.files.len; i++)
        if (c->spec->workdir_exec || ! path_is_below_any (c->allowlist.files.items[i], writable))
            grant (c, c->allowlist.files.items[i], LANDLOCK_EXECUTABLE_FILE);
}

static const struct {
    const char *path;
    enum landlock_grant grant;
    bool is_sealed_only;
} devices[] = {
    { "/dev/null", LANDLOCK_DEVICE_WRITE, false },   { "/dev/zero", LANDLOCK_DEVICE_WRITE, false },
    { "/dev/full", LANDLOCK_DEVICE_WRITE, false },   { "/dev/random", LANDLOCK_DEVICE_READ, false },
    { "/dev/urandom", LANDLOCK_DEVICE_READ, false }, { "/dev/tty", LANDLOCK_TERMINAL, false },
};

/* Without mounts there is nothing of the session's own to show in their place: a command that knows
 * neither its user nor localhost does no work. */
static void
grant_host_names (struct confinement *c)
{
    static const char *const names[] = { "/etc/passwd", "/etc/group", "/etc/hosts",
                                         "/etc/nsswitch.conf", "/etc/resolv.conf" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        grant (c, names[i], LANDLOCK_READABLE_FILE);
}

/* What a command's own mounts put there. The host's at these places stays shut: each is named by
 * the file that is bound, or opened once the mounts are made. */
static void
grant_own_mounts (struct confinement *c)
{
    const struct mount_plan *m = &c->mounts;
    for (size_t i = 0; mount_public_proc[i]; i++)
        grant (c, mount_public_proc[i], LANDLOCK_READABLE_FILE);
    grant (c, "/sys/devices/system/cpu", LANDLOCK_READABLE_TREE);
    grant (c, "/sys/kernel/mm/transparent_hugepage", LANDLOCK_READABLE_TREE);
    if (c->spec->space != SPACE_OWN)
        grant_host_names (c);
    if (m->kind == MOUNT_NOTHING)
        return;
    for (size_t i = 0; mount_synthetic_etc[i]; i++)
        grant (
            c,
            arena_printf (c->arena, "%s/%s", c->spec->folders.sealed_etc, mount_synthetic_etc[i]),
            LANDLOCK_READABLE_FILE);
    if (m->has_shm)
        landlock_plan_add_late (&c->landlock, "/dev/shm", LANDLOCK_WRITABLE_TREE);
    if (m->has_shm && confinement_has_sockets (c))
        landlock_plan_add_late (&c->landlock, "/dev/shm", LANDLOCK_SOCKETS);
    if (m->has_pts) {
        landlock_plan_add_late (&c->landlock, "/dev/pts", LANDLOCK_TERMINAL);
        landlock_plan_add_late (&c->landlock, "/dev/ptmx", LANDLOCK_TERMINAL);
    }
}

/* A tree may be one file. */
static enum landlock_grant
tree_grant (const struct confinement_tree *t)
{
    struct stat st;
    if (stat (t->path, &st) == 0 && S_ISREG (st.st_mode))
        return LANDLOCK_EXECUTABLE_FILE;
    return t->is_listable ? LANDLOCK_EXECUTABLE_TREE : LANDLOCK_EXECUTABLE_DIR;
}

static bool
build_landlock (struct confinement *c, struct mur_error **err)
{
    bool is_sealed = c->spec->tier == CONFINEMENT_SEALED;
    landlock_plan_init (&c->landlock, c->spec->probe->landlock_abi);
    if (! grant_folders (c, err))
        return false;
    grant_programs (c);
    grant_all (c, &c->allowlist.readable, LANDLOCK_READABLE_TREE);
    grant_all (c, &c->trust_store, LANDLOCK_READABLE_TREE);
    for (size_t i = 0; i < c->spec->tree_count; i++)
        grant (c, c->spec->trees[i].path, tree_grant (&c->spec->trees[i]));
    for (size_t i = 0; i < ARRAY_LEN (devices); i++)
        if (is_sealed || ! devices[i].is_sealed_only)
            grant (c, devices[i].path, devices[i].grant);
    grant_all (c, &c->allowlist.run_trees, LANDLOCK_EXECUTABLE_TREE);
    grant_all (c, &c->public, LANDLOCK_READABLE_TREE);
    grant_own_mounts (c);
    if (c->spec->network->len)
        grant (c, "/etc/resolv.conf", LANDLOCK_READABLE_FILE);
    if (! is_sealed)
        return true;
    const char *const *const shown[] = { mount_system_trees, mount_etc_entries };
    for (size_t n = 0; n < ARRAY_LEN (shown); n++)
        for (size_t i = 0; shown[n][i]; i++)
            grant (c, shown[n][i], LANDLOCK_READABLE_TREE);
    return true;
}

/* --- mounts --- */

static bool
is_within_earlier (const char *path, const char *const *paths, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (fs_path_is_within (path, paths[i]))
            return true;
    return false;
}

/* Paths a command needs at their own place beside the folders, in the arena, NULL-terminated. */
static const char *const *
needed_paths (struct confinement *c)
{
    const struct strv *groups[] = { &c->allowlist.run_trees, &c->allowlist.readable, &c->public,
                                    &c->trust_store, &c->allowlist.files };
    size_t count = c->spec->tree_count;
    for (size_t g = 0; g < ARRAY_LEN (groups); g++)
        count += groups[g]->len;
    const char *const *sockets = c->spec->host_sockets;
    for (size_t i = 0; sockets && sockets[i]; i++)
        count++;
    const char **paths = arena_new_array (c->arena, const char *, count + 1);
    size_t len = 0;
    for (size_t i = 0; i < c->spec->tree_count; i++)
        if (! c->spec->trees[i].is_staged)
            paths[len++] = c->spec->trees[i].path;
    for (size_t g = 0; g < ARRAY_LEN (groups); g++)
        for (size_t i = 0; i < groups[g]->len; i++)
            if (! is_within_earlier (groups[g]->items[i], paths, len))
                paths[len++] = groups[g]->items[i];
    for (size_t i = 0; sockets && sockets[i]; i++)
        paths[len++] = sockets[i];
    return paths;
}

static bool
is_granted_socket (const struct confinement_spec *s, const char *path)
{
    for (size_t i = 0; s->host_sockets && s->host_sockets[i]; i++) {
        char resolved[PATH_MAX];
        if (str_eq (s->host_sockets[i], path) ||
            (realpath (s->host_sockets[i], resolved) && str_eq (resolved, path)))
            return true;
    }
    return false;
}

/* Every socket of the host but those that are granted or lie in the session's own folders. */
static const char *const *
covered_sockets (struct confinement *c)
{
    const struct mount_folders *f = &c->spec->folders;
    const char *own[] = { f->work.path, f->temp.path, f->home.path, NULL };
    _cleanup_strv_ struct strv paths = { 0 };
    host_socket_paths (&paths);
    const char **covered = arena_new_array (c->arena, const char *, paths.len + 1);
    for (size_t i = 0, len = 0; i < paths.len; i++)
        if (! path_is_below_any (paths.items[i], own) &&
            ! is_granted_socket (c->spec, paths.items[i]))
            covered[len++] = arena_strdup (c->arena, paths.items[i]);
    return covered;
}

static bool
build_mounts (struct confinement *c, struct mur_error **err)
{
    struct mount_folders folders = c->spec->folders;
    folders.read_only = needed_paths (c);
    const char **staged = arena_new_array (c->arena, const char *, c->spec->tree_count + 1);
    for (size_t i = 0, len = 0; i < c->spec->tree_count; i++)
        if (c->spec->trees[i].is_staged)
            staged[len++] = c->spec->trees[i].path;
    folders.staged_trees = staged;
    folders.links = (const char *const *)c->allowlist.links.items;
    if (c->spec->allows_unix_sockets)
        folders.covered = covered_sockets (c);
    /* Without Landlock a command of root could write itself out of its control group, and live on.
     */
    static const char *const control_groups[] = { "/sys/fs/cgroup", NULL };
    if (c->spec->tier == CONFINEMENT_SECCOMP)
        folders.guarded = control_groups;
    if (wants_root (c))
        return mount_plan_sealed (&c->mounts, &folders, c->arena, err);
    if (c->spec->probe->mounts.state == PROBE_SUCCEEDED && c->spec->space == SPACE_OWN)
        mount_plan_tmp (&c->mounts, &folders, c->arena);
    else
        mount_plan_none (&c->mounts, &folders, c->arena);
    return true;
}

const char *
confinement_temp_dir (const struct confinement *c)
{
    return c->mounts.kind == MOUNT_NOTHING ? c->spec->folders.temp.path : "/tmp";
}

/* --- the whole --- */

static bool
make_scope (struct confinement *c, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    c->scope = cgroup_scope_new (c->spec->session_id, &c->spec->cgroup, &caught);
    if (c->scope)
        return (c->watcher = group_watcher_new (c->scope, err)) != NULL;
    if (! c->spec->cgroup_is_optional)
        return mur_propagate (err, caught);
    c->cgroup_shortfall = x_strdup (caught->message);
    mur_error_free (caught);
    return true;
}

/* After the scope: its watcher is one of those to keep signals from. The launcher is another. */
static bool
build_filter (struct confinement *c, struct mur_error **err)
{
    const struct attempt_failure *missing = c->spec->probe->missing;
    const bool has_any = c->spec->space == SPACE_OWN;
    const struct syscall_surface surface = {
        .allows_unix_sockets = confinement_has_sockets (c),
        .internet = c->spec->space != SPACE_WALLED ? INTERNET_OF_NAMESPACE
                    : c->proxy_port                ? INTERNET_GIVEN
                                                   : INTERNET_NONE,
        .reads_interfaces = has_any && c->allowlist.reads_interfaces,
        .has_own_ipc = has_any && ! missing[WALL_IPC].step,
        .has_own_processes = has_any && ! missing[WALL_PROCESSES].step,
        .reads_attributes = c->spec->tier == CONFINEMENT_SEALED,
    };
    if (! syscall_filter_compile (&surface, &c->filter, err))
        return false;
    if (surface.has_own_processes)
        return true;
    if (c->spec->probe->landlock_abi >= LANDLOCK_SCOPE_ABI &&
        ! (c->launcher = launcher_new (! has_any, err)))
        return false;
    const pid_t runtime[] = { getpid (), getpgrp (),
                              c->watcher ? group_watcher_pid (c->watcher) : getpid (),
                              c->launcher ? launcher_tid (c->launcher) : getpid () };
    return syscall_filter_guard (&c->filter, runtime, ARRAY_LEN (runtime), err);
}

/* --- a relay without a network namespace --- */

/* The port is taken before the rules are made and held for the session: Landlock looks at ports
 * alone, so nobody else may listen there. */
static bool
wall_network (struct confinement *c, struct mur_error **err)
{
    const struct allow_list *rules = c->spec->network;
    if (c->spec->space != SPACE_WALLED)
        return true;
    if (! landlock_plan_wall_network (&c->landlock))
        return mur_fail (err, E_CAP_005, "Landlock of this kernel does not judge the network");
    if (! rules->len)
        return true;
    c->proxy_port = network_listeners_bind_proxy (&c->namespaces.listeners);
    if (! c->proxy_port)
        return mur_fail_errno (err, E_IO_003, "cannot listen for the egress relay");
    landlock_plan_add_port (&c->landlock, c->proxy_port);
    /* A socket that is given reaches this host alone, so a port of it needs no relay. */
    for (size_t i = 0; i < rules->len; i++)
        if (str_eq (rules->rules[i].host, "127.0.0.1") && rules->rules[i].port > 0 &&
            ! allow_is_held (rules->hold, rules->rules[i].host, rules->rules[i].port))
            landlock_plan_add_port (&c->landlock, (uint16_t)rules->rules[i].port);
    return true;
}

const char *const *
confinement_proxy_env (const struct confinement *c)
{
    static const char *const names[] = { "http_proxy", "https_proxy", "all_proxy",
                                         "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY" };
    const char **entries = arena_new_array (c->arena, const char *, ARRAY_LEN (names) + 4);
    size_t len = 0;
    for (size_t i = 0; c->proxy_port && i < ARRAY_LEN (names); i++)
        entries[len++] = arena_printf (c->arena, "%s=http://127.0.0.1:%u", names[i], c->proxy_port);
    if (c->proxy_port) {
        entries[len++] = "no_proxy=127.0.0.1";
        entries[len++] = "NO_PROXY=127.0.0.1";
        entries[len++] = "NODE_USE_ENV_PROXY=1"; /* node reads them only then */
    }
    entries[len] = NULL;
    return entries;
}

/* Who hears of the command's refused calls gives it its sockets, else the relay does. */
static void
give_sockets (struct confinement *c, struct spawned *spawned)
{
    int fd = steal_fd (&spawned->listener_fd);
    if (fd < 0)
        return;
    pthread_mutex_lock (&c->lock);
    bool is_given = ! c->is_ended && egress_give_sockets (c->egress, fd);
    if (is_given) {
        x_grow (c->given_fds, c->given_len, c->given_cap);
        c->given_fds[c->given_len++] = fd;
    }
    pthread_mutex_unlock (&c->lock);
    if (! is_given)
        close (fd);
}

struct confinement *
confinement_new (const struct confinement_spec *spec, struct mur_error **err)
{
    _cleanup_ (confinement_freep) struct confinement *c = x_new0 (struct confinement);
    c->spec = spec;
    c->arena = arena_new ();
    c->namespaces = (struct session_namespaces)SESSION_NAMESPACES_NONE;
    pthread_mutex_init (&c->lock, NULL);
    const char *writable[] = { spec->folders.work.path, spec->folders.records.path, NULL };
    exec_allowlist_resolve (&c->allowlist, spec->shell_allow, spec->path, writable, spec->staged);
    if (spec->workdir_exec)
        exec_allowlist_add_starters (&c->allowlist);
    if (spec->network->len && spec->shell_allow && spec->shell_allow[0])
        trust_store_paths (writable, &c->trust_store);
    recipes_public (&c->public, &c->allowlist.links);
    if (! build_mounts (c, err) ||
        (spec->tier >= CONFINEMENT_LANDLOCK && ! build_landlock (c, err)) ||
        ! wall_network (c, err) || ! make_scope (c, err) || ! build_filter (c, err))
        return NULL;
    return steal_ptr (&c);
}

void
confinement_free (struct confinement *c)
{
    if (! c)
        return;
    pthread_mutex_lock (&c->lock);
    c->is_ended = true;
    pthread_mutex_unlock (&c->lock);
    cgroup_scope_free (c->scope);
    group_watcher_free (c->watcher);
    launcher_free (c->launcher);
    egress_free (c->egress);
    for (size_t i = 0; i < c->given_len; i++)
        close (c->given_fds[i]);
    free (c->given_fds);
    session_namespaces_close (&c->namespaces);
    landlock_plan_free (&c->landlock);
    syscall_filter_free (&c->filter);
    strv_free (&c->trust_store);
    strv_free (&c->public);
    exec_allowlist_free (&c->allowlist);
    pthread_mutex_destroy (&c->lock);
    free (c->cgroup_shortfall);
    arena_free (c->arena);
    free (c);
}

const struct exec_allowlist *
confinement_allowlist (const struct confinement *c)
{
    return &c->allowlist;
}

const struct strv *
confinement_trust_store (const struct confinement *c)
{
    return &c->trust_store;
}

bool
confinement_has_mounts (const struct confinement *c)
{
    return c->mounts.kind != MOUNT_NOTHING;
}

bool
confinement_has_root (const struct confinement *c)
{
    return c->mounts.kind == MOUNT_SEALED;
}

const struct strv *
confinement_public (const struct confinement *c)
{
    return &c->public;
}

const char *
confinement_cgroup_shortfall (const struct confinement *c)
{
    return c->cgroup_shortfall;
}

const struct cgroup_scope *
confinement_scope (const struct confinement *c)
{
    return c->scope;
}

uint64_t
confinement_unlinked_bytes (const struct confinement *c)
{
    const struct mount_folders *f = &c->spec->folders;
    const dev_t disks[] = { f->work.dev, f->temp.dev, f->home.dev };
    return c->scope ? open_files_unlinked_bytes (c->scope, disks, ARRAY_LEN (disks)) : 0;
}

uint64_t
confinement_output_max (const struct confinement *c)
{
    return c->spec->limits.max_file_size_bytes;
}

static bool
fail_to_make (const struct namespace_failure *f, struct mur_error **err)
{
    bool is_mount = f->detail[0] || f->is_composed_root;
    if (is_mount) {
        errno = f->attempt.errno_value;
        return mur_fail_errno (err, f->is_composed_root ? E_RUN_014 : E_IO_003, "%s%s%s%s",
                               f->is_composed_root ? "the sealed root could not be built: " : "",
                               f->attempt.step, f->detail[0] ? " " : "", f->detail);
    }
    _cleanup_free_ char *text = attempt_failure_text (&f->attempt);
    return mur_fail (err, E_CAP_005, "no namespaces for the commands of this session: %s", text);
}

/* Under the lock. */
static bool
make_namespaces (struct confinement *c, struct mur_error **err)
{
    if (c->spec->space != SPACE_OWN) {
        c->namespaces.fds[NS_WORK] =
            open (c->spec->folders.work.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        c->has_namespaces =
            ! c->proxy_port || (c->egress = egress_new (&c->namespaces.listeners, c->spec->network,
                                                        c->ports, err)) != NULL;
        return c->has_namespaces;
    }
    struct namespace_failure failure;
    size_t count = egress_ports (c->spec->network, c->ports);
    const struct namespace_request request = { c->ports, count, &c->mounts, c->scope };
    if (! session_namespaces_make (&request, &c->namespaces, &failure))
        return fail_to_make (&failure, err);
    /* The filter was made for what the host was found to give. */
    for (enum session_wall w = 0; w < WALL_COUNT; w++)
        if (c->namespaces.missing[w].step && ! c->spec->probe->missing[w].step &&
            session_wall_is_relied_on (w)) {
            failure.attempt = c->namespaces.missing[w];
            session_namespaces_close (&c->namespaces);
            return fail_to_make (&failure, err);
        }
    if (count &&
        ! (c->egress = egress_new (&c->namespaces.listeners, c->spec->network, c->ports, err))) {
        session_namespaces_close (&c->namespaces);
        return false;
    }
    int proc_fd = c->namespaces.fds[NS_PROC];
    if (proc_fd >= 0 && c->spec->tier >= CONFINEMENT_LANDLOCK &&
        ! landlock_plan_add_fd (&c->landlock, proc_fd, LANDLOCK_READABLE_TREE, false, err))
        return false;
    if (c->spec->tier >= CONFINEMENT_LANDLOCK)
        landlock_plan_prepare (&c->landlock);
    c->has_namespaces = true;
    return true;
}

const struct session_namespaces *
confinement_namespaces (struct confinement *c, struct mur_error **err)
{
    pthread_mutex_lock (&c->lock);
    bool is_usable = ! c->is_ended && (c->has_namespaces || make_namespaces (c, err));
    bool is_ended = c->is_ended;
    pthread_mutex_unlock (&c->lock);
    if (is_ended)
        mur_fail (err, E_IO_003, "the session has ended: nothing more is started");
    return is_usable ? &c->namespaces : NULL;
}

static bool
add_closure (const struct strv *closure, const struct landlock_plan *base,
             struct landlock_plan *plan, struct mur_error **err)
{
    if (! landlock_plan_copy (base, plan, err))
        return false;
    for (size_t i = 0; i < closure->len; i++)
        landlock_plan_add (plan, closure->items[i], LANDLOCK_EXECUTABLE_FILE, false, false, NULL);
    return true;
}

bool
confinement_spawn (struct confinement *c, const struct confined_program *program,
                   struct spawned *out, struct mur_error **err)
{
    const struct session_namespaces *namespaces = confinement_namespaces (c, err);
    if (! namespaces)
        return false;
    const char *moved;
    if (! mount_plan_is_current (&c->mounts, &moved))
        return mur_fail_errno (err, c->mounts.kind == MOUNT_SEALED ? E_RUN_014 : E_IO_003,
                               "compare the folder's identity %s", moved);
    struct spawn_request request = {
        .path = program->path,
        .argv = program->argv,
        .env = program->env,
        .stdin_fd = program->stdin_fd,
        .stdout_fd = program->stdout_fd,
        .stderr_fd = program->stderr_fd,
        .limits = c->spec->limits,
        .scope = c->scope,
        .nest = program->nest,
        .namespaces = namespaces,
        .landlock = c->spec->tier >= CONFINEMENT_LANDLOCK ? &c->landlock : NULL,
        .filter = &c->filter,
        .is_heard = program->is_heard || c->proxy_port,
    };
    request.limits.max_processes =
        c->scope ? 0 : user_threads_count () + c->spec->limits.max_processes;
    request.limits.memory_bytes = confinement_memory_bytes (c);
    _cleanup_ (landlock_plan_free) struct landlock_plan with_closure = { 0 };
    if (request.landlock && program->closure && program->closure->len) {
        if (! add_closure (program->closure, &c->landlock, &with_closure, err))
            return false;
        request.landlock = &with_closure;
    }
    if (! (c->launcher ? launcher_spawn (c->launcher, &request, out, err)
                       : sandbox_spawn (&request, out, err)))
        return false;
    if (! program->is_heard)
        give_sockets (c, out);
    return true;
}

uint64_t
confinement_memory_bytes (const struct confinement *c)
{
    /* Programs reserve far more addresses than they use. */
    bool is_bounded_by_group = c->scope && ! c->spec->memory_is_declared;
    return is_bounded_by_group ? 0 : c->spec->limits.memory_bytes;
}

void
confinement_tell_network (struct confinement *c)
{
    pthread_mutex_lock (&c->lock);
    if (c->has_namespaces)
        network_refusals_tell (&c->namespaces.listeners, c->spec->network);
    pthread_mutex_unlock (&c->lock);
}

void
confinement_kill_all (struct confinement *c)
{
    if (c->scope)
        cgroup_scope_kill (c->scope);
    pthread_mutex_lock (&c->lock);
    session_namespaces_kill_all (&c->namespaces);
    pthread_mutex_unlock (&c->lock);
}

void
confinement_enter (struct confinement *c, struct occupancy *o)
{
    struct cgroup_counters before = { 0 };
    if (c->scope)
        before = cgroup_scope_counters (c->scope);
    pthread_mutex_lock (&c->lock);
    *o = (struct occupancy){ before, ++c->entries, c->running++ == 0 };
    pthread_mutex_unlock (&c->lock);
}

const char *
confinement_leave (struct confinement *c, struct occupancy *o, int signal_number, int exit_code)
{
    pthread_mutex_lock (&c->lock);
    c->running--;
    bool was_alone = o->was_alone && c->entries == o->entries;
    pthread_mutex_unlock (&c->lock);
    if (signal_number == SIGXCPU)
        return "cpu_seconds";
    if (signal_number == SIGXFSZ)
        return "max_file_size_bytes";
    if (! c->scope || (! was_alone && exit_code != 128 + SIGKILL))
        return NULL;
    struct cgroup_counters after = cgroup_scope_counters (c->scope);
    if (after.oom_kills > o->before.oom_kills)
        return "cgroup_memory_bytes";
    return was_alone && after.pids_refused > o->before.pids_refused ? "cgroup_pids_max" : NULL;
}
