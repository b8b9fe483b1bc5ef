/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/confine.h"
#include "policy/warn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "fs/replace.h"
#include "replay/play/player.h"
#include "sandbox/host/host.h"
#include "sandbox/kernel/environment.h"
#include "sandbox/programs/compiler_helpers.h"
#include "sandbox/programs/hopeless.h"
#include "session/commands/confine_check.h"
#include "session/commands/confine_etc.h"
#include "session/commands/folder_size.h"
#include "session/commands/processes_internal.h"
#include "session/state/held_hosts.h"
#include "session/state/refused.h"
#include "session/state/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often the folders are measured: at most every 10 s, oftener while a look costs little. */
#define MEASURE_EVERY_MS 10000
#define MEASURE_SHARE    50 /* a look takes at most this part of a processor, and half of the time */

extern char **environ;

/* What is true of the host is said once in a tree of sessions: by the one that has no launcher. */
static bool
is_reported_already (void)
{
    return str_eq (getenv ("MURMUR_HOST_WARNINGS_REPORTED"), "1");
}

void
confine_warn_host (const struct session *s)
{
    if (policy_may_run_native (s->policy, false) && ! is_reported_already () &&
        host_probe_once ()->userns == USERNS_RESTRICTION_DISABLED)
        diag_warn (DIAG_RUNTIME, W_SEC_013, "%s", HOST_UNRESTRICTED_TEXT);
}

/* --- folders --- */

bool
confine_name_folder (const char *path, struct mount_folder *f, struct mur_error **err)
{
    struct stat st;
    if (lstat (path, &st) < 0 || ! S_ISDIR (st.st_mode)) {
        errno = errno ? errno : ENOTDIR;
        return mur_fail_errno (err, E_IO_003, "cannot use the folder %s", path);
    }
    *f = (struct mount_folder){ path, st.st_dev, st.st_ino };
    return true;
}

static bool
fill_folders (struct session *s, struct mur_error **err)
{
    struct mount_folders *f = &s->rooms.processes->confined->spec.folders;
    const char *temp = arena_printf (s->arena, "%s/tmp", s->places.dirs.records_path);
    const struct confine_program *program = s->rooms.processes->program;
    const char *home = program && program->home
                           ? program->home
                           : arena_printf (s->arena, "%s/home", s->places.dirs.records_path);
    const char *etc = arena_printf (s->arena, "%s/sealed-etc", s->places.dirs.session_path);
    if (! (f->sealed_etc = confine_write_etc (s->arena, etc, home, err)))
        return false;
    const struct str_list *protected = &s->policy->files.read_only_paths;
    const char **paths = arena_new_array (s->arena, const char *, protected->len + 1);
    for (size_t i = 0; i < protected->len; i++)
        paths[i] = arena_printf (s->arena, "%s/%s", s->places.work_path, protected->items[i]);
    f->protected = paths;
    return confine_name_folder (s->places.work_path, &f->work, err) &&
           confine_name_folder (temp, &f->temp, err) && confine_name_folder (home, &f->home, err) &&
           confine_name_folder (s->places.dirs.runtime_path, &f->runtime, err) &&
           confine_name_folder (s->places.dirs.records_path, &f->records, err);
}

/* --- what the policy says --- */

static const char *const *
names_of (struct session *s, const struct str_list *list)
{
    const char **names = arena_new_array (s->arena, const char *, list->len + 1);
    for (size_t i = 0; i < list->len; i++)
        names[i] = list->items[i];
    return names;
}

static void
fill_trees (struct session *s)
{
    static const struct cap_shell none;
    const struct cap_shell *shell = s->policy->commands.shell ? s->policy->commands.shell : &none;
    const struct confine_program *program = s->rooms.processes->program;
    size_t count = shell->staged_runtime.len;
    for (size_t i = 0; i < shell->interpreter_runtime.len; i++)
        count += shell->interpreter_runtime.items[i].dirs.len;
    for (size_t i = 0; program && program->trees[i]; i++)
        count++;
    struct confinement_tree *trees = arena_new_array (s->arena, struct confinement_tree, count + 1);
    size_t n = 0;
    for (size_t i = 0; program && program->trees[i]; i++)
        trees[n++] = (struct confinement_tree){ program->trees[i], true, true };
    for (size_t i = 0; i < shell->staged_runtime.len; i++)
        trees[n++] =
            (struct confinement_tree){ shell->staged_runtime.items[i].source_path, true, true };
    for (size_t i = 0; i < shell->interpreter_runtime.len; i++)
        for (size_t d = 0; d < shell->interpreter_runtime.items[i].dirs.len; d++) {
            const struct interpreter_dir *dir = &shell->interpreter_runtime.items[i].dirs.items[d];
            trees[n++] = (struct confinement_tree){ dir->path, dir->list_dir.value, false };
        }
    s->rooms.processes->confined->spec.trees = trees;
    s->rooms.processes->confined->spec.tree_count = n;
    s->rooms.processes->confined->spec.staged = confine_staged_names (s->policy);
}

static void
fill_limits (struct session *s)
{
    struct confinement_spec *spec = &s->rooms.processes->confined->spec;
    const struct cap_resources *r = &s->policy->resources;
    spec->limits = (struct spawn_limits){ .max_processes = r->max_processes.value,
                                          .max_open_files = r->max_open_files.value,
                                          .max_file_size_bytes = r->max_file_size_bytes.value,
                                          .cpu_seconds = r->cpu_seconds.value,
                                          .memory_bytes = r->memory_bytes.value };
    spec->memory_is_declared = r->memory_bytes.is_set;
    confine_cgroup_limits (s->policy, s->places.work_path, &spec->cgroup);
    spec->cgroup_is_optional = s->asked->config->cgroup_is_optional;
    s->rooms.processes->confined->workdir_max_bytes = r->workdir_max_bytes.value;
}

static bool
fill_network (struct session *s, struct mur_error **err)
{
    const struct str_list *allow = &s->policy->network.allow;
    bool has_network = ! s->asked->player || player_is_live (s->asked->player);
    for (size_t i = 0; has_network && i < allow->len; i++)
        if (! allow_list_add (&s->rooms.processes->confined->network, allow->items[i], err))
            return false;
    const struct confine_program *program = s->rooms.processes->program;
    for (size_t i = 0; program && i < 2; i++) {
        char entry[40];
        snprintf (entry, sizeof entry, "http://127.0.0.1:%u", program->ports[i]);
        if (program->ports[i] &&
            ! allow_list_add (&s->rooms.processes->confined->network, entry, err))
            return false;
    }
    s->rooms.processes->confined->network.hold = held_hosts_of (s);
    s->rooms.processes->confined->network.listener =
        (struct allow_listener){ refused_note_host, s };
    s->rooms.processes->confined->spec.network = &s->rooms.processes->confined->network;
    struct confinement_spec *spec = &s->rooms.processes->confined->spec;
    if (has_network)
        spec->host_sockets = names_of (s, &s->policy->network.host_sockets);
    spec->allows_unix_sockets =
        s->policy->network.unix_sockets_allowed || s->policy->network.host_sockets.len;
    return true;
}

enum confinement_tier
confine_tier (const struct session *s)
{
    static const enum confinement_tier tiers[] = {
        [TIER_NONE] = CONFINEMENT_SECCOMP,
        [TIER_SECCOMP] = CONFINEMENT_SECCOMP,
        [TIER_LANDLOCK] = CONFINEMENT_LANDLOCK,
        [TIER_SEALED] = CONFINEMENT_SEALED,
    };
    return tiers[host_decide (s->asked->decision)->applied];
}

/* On stderr and in logs/bootstrap.log, where it outlives the terminal. */
static _printf_ (3, 4) void launch_warning (const struct session *s, enum diag_code code,
                                            const char *fmt, ...)
{
    va_list args;
    va_start (args, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, args);
    va_end (args);
    diag_warn (DIAG_RUNTIME, code, "%s", text);
    _cleanup_free_ char *line =
        x_asprintf ("[capsule-runtime] warning[%s]: %s", diag_code_name (code), text);
    session_log_line (s, line);
}

void
confine_warn_places (const struct session *s)
{
    const struct capsule_containment *capsule = &s->asked->decision->capsule;
    if (capsule->dir_inside_workdir)
        launch_warning (s, W_SEC_033,
                        "%s lies inside the work folder %s: nothing keeps the capsule from writing "
                        "there",
                        capsule->dir_inside_workdir, capsule->work_dir);
}

/* Which helpers of its compilers a sealed root holds but does not execute. */
static void
warn_compilers (const struct session *s)
{
    const struct confinement_spec *spec = &s->rooms.processes->confined->spec;
    const char **trees = arena_new_array (s->arena, const char *, spec->tree_count + 1);
    for (size_t i = 0; i < spec->tree_count; i++)
        trees[i] = spec->trees[i].path;
    const char *writable[] = { spec->folders.work.path, spec->folders.records.path, NULL };
    struct compiler_helpers helpers;
    compiler_helpers_check (confinement_allowlist (s->rooms.processes->confined->confinement),
                            trees, spec->path, writable, &helpers);
    for (size_t i = 0; i < helpers.uncovered.len; i++)
        launch_warning (s, W_SEC_012, "the sealed root does not let a command execute %s",
                        helpers.uncovered.items[i]);
    _cleanup_free_ char *unchecked = strv_join (&helpers.unchecked, ", ");
    if (helpers.unchecked.len)
        launch_warning (s, W_SEC_029,
                        "whether the sealed root lets a compiler start its helpers could not be "
                        "checked: %s",
                        unchecked);
    compiler_helpers_free (&helpers);
}

static void
warn_once (struct session *s)
{
    if (s->rooms.processes->is_told)
        return;
    s->rooms.processes->is_told = true;
    const enum containment_tier tier = host_decide (s->asked->decision)->applied;
    struct tier_warning warnings[TIER_WARNINGS_MAX];
    /* What a tier confines is said of hosts with namespaces; without them W-SEC-034 is true. */
    size_t count = s->rooms.processes->confined->spec.space != SPACE_OWN
                       ? 0
                       : policy_tier_warnings (s->policy, tier, warnings);
    for (size_t i = 0; i < count; i++)
        launch_warning (s, warnings[i].code, "%s", warnings[i].text);
    const struct confined *c = s->rooms.processes->confined;
    const char *reason = NULL;
    if (c->spec.space == SPACE_OPEN)
        launch_warning (
            s, W_SEC_034,
            "this host makes no namespaces and --unconfined is given: commands reach every "
            "address and see every process of this user");
    for (size_t i = 0; i < s->policy->network.host_sockets.len; i++)
        launch_warning (s, W_SEC_036,
                        "commands reach the host's socket %s (network.host_sockets): what answers "
                        "there acts outside every wall",
                        s->policy->network.host_sockets.items[i]);
    const char *shortfall = confinement_cgroup_shortfall (c->confinement);
    if (shortfall)
        launch_warning (s, W_SEC_010,
                        "commands run without a control group, under process limits alone: %s",
                        shortfall);
    else if (cgroup_scope_io_status (confinement_scope (c->confinement), &reason) ==
             CGROUP_IO_UNAVAILABLE)
        launch_warning (s, W_SEC_021,
                        "capabilities.resources.cgroup_io_bytes_per_sec is not applied: %s",
                        reason);
    if (tier == TIER_SEALED)
        warn_compilers (s);
    const struct exec_allowlist *list = confinement_allowlist (c->confinement);
    for (size_t i = 0; i < list->name_count && ! s->policy->network.host_sockets.len; i++) {
        const char *why = hopeless_why (list->names[i].name);
        if (why)
            diag_note ("shell.allow: %s cannot do its work inside: %s", list->names[i].name, why);
    }
    for (size_t i = 0; i < list->notes.len; i++)
        diag_note ("%s", list->notes.items[i]);
}

void
confine_admit (struct session *s, const struct confine_program *program)
{
    s->rooms.processes->program = program;
}

const struct strv *
confine_env (const struct session *s)
{
    return &s->rooms.processes->confined->env;
}

bool
confine_start (struct session *s, struct mur_error **err)
{
    if (! session_may_run_native (s))
        return true;
    struct confined *c = s->rooms.processes->confined = x_new0 (struct confined);
    c->spec.session_id = s->id.text;
    c->spec.tier = confine_tier (s);
    c->spec.probe = host_probe_once ();
    c->spec.shell_allow = names_of (s, &s->policy->commands.allow);
    c->spec.path = getenv ("PATH");
    c->spec.space = host_decide (s->asked->decision)->space;
    c->spec.workdir_exec = s->policy->files.exec_allowed;
    fill_trees (s);
    fill_limits (s);
    if (! fill_network (s, err) || ! fill_folders (s, err) || ! confine_check_host (s, true, err))
        return false;
    c->confinement = confinement_new (&c->spec, err);
    if (! c->confinement)
        return false;
    c->commands = commands_new (c->confinement, s->places.records);
    commands_set_disk_floor (c->commands, s->places.work_path,
                             s->policy->resources.free_disk_bytes.value);
    warn_once (s);
    return true;
}

/* A recipe's value with the session's folders filled in. */
static const char *
filled_in (struct session *s, const char *entry)
{
    struct confined *c = s->rooms.processes->confined;
    const struct {
        const char *mark, *value;
    } places[] = { { "{home}", c->spec.folders.home.path },
                   { "{tmp}", confinement_temp_dir (c->confinement) } };
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        const char *at = strstr (entry, places[i].mark);
        if (at)
            return arena_printf (s->arena, "%.*s%s%s", (int)(at - entry), entry, places[i].value,
                                 at + strlen (places[i].mark));
    }
    return entry;
}

static const char *const *
recipe_environment (struct session *s)
{
    const struct strv *env =
        &confinement_allowlist (s->rooms.processes->confined->confinement)->env;
    const char *const *proxy = confinement_proxy_env (s->rooms.processes->confined->confinement);
    size_t len = env->len, proxied = 0;
    while (proxy[proxied])
        proxied++;
    const char **entries = arena_new_array (s->arena, const char *, env->len + proxied + 2);
    for (size_t i = 0; i < env->len; i++)
        entries[i] = filled_in (s, env->items[i]);
    /* Nothing covers the host's own there, which may not be read and must not stop git. */
    if (! confinement_has_mounts (s->rooms.processes->confined->confinement))
        entries[len++] = "GIT_CONFIG_NOSYSTEM=1";
    for (size_t i = 0; i < proxied; i++)
        entries[len++] = proxy[i];
    return entries;
}

void
confine_kill_all (struct session *s)
{
    if (s->rooms.processes->confined)
        commands_kill_all (s->rooms.processes->confined->commands);
}

struct confinement *
confine_confinement (const struct session *s)
{
    return s->rooms.processes->confined ? s->rooms.processes->confined->confinement : NULL;
}

void
confine_set_env (struct session *s)
{
    struct confined *c = s->rooms.processes->confined;
    if (! c)
        return;
    struct environment_spec spec = {
        .host = environ,
        .recipes = recipe_environment (s),
        .path = getenv ("PATH") ? confinement_allowlist (c->confinement)->path : NULL,
        .overrides = (const char *const *)s->kit.guest_env.items,
        .baseline = names_of (s, &s->policy->commands.baseline_env),
        .strip = names_of (s, &s->policy->commands.strip_env),
        .home_dir = c->spec.folders.home.path,
        .runtime_dir = s->places.dirs.runtime_path,
        .records_dir = s->places.dirs.records_path,
        .temp_dir = confinement_temp_dir (c->confinement),
    };
    command_environment_build (&spec, &c->env);
}

/* Lists of paths as one, in the arena, NULL-terminated. */
static const char *const *
joined (struct arena *a, const struct strv *const *lists, size_t count)
{
    size_t total = 0, len = 0;
    for (size_t i = 0; i < count; i++)
        total += lists[i]->len;
    const char **out = arena_new_array (a, const char *, total + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < lists[i]->len; j++)
            out[len++] = arena_strdup (a, lists[i]->items[j]);
    return out;
}

/* What a sealed root shows of the host. */
static void
add_system_trees (struct strv *out)
{
    const char *const *const shown[] = { mount_system_trees, mount_etc_entries };
    for (size_t n = 0; n < ARRAY_LEN (shown); n++)
        for (size_t i = 0; shown[n][i]; i++)
            strv_push (out, shown[n][i]);
}

struct refusal_walls
confine_refusal_walls (struct session *s, bool (*reaches) (void *, const char *), void *ctx)
{
    struct confined *c = s->rooms.processes->confined;
    const struct exec_allowlist *list = confinement_allowlist (c->confinement);
    if (! c->refusal_programs) {
        const struct strv *const programs[] = { &list->files, &list->run_trees };
        _cleanup_strv_ struct strv system = { 0 };
        if (c->spec.tier == CONFINEMENT_SEALED)
            add_system_trees (&system);
        const struct strv *const readable[] = { &list->readable,
                                                confinement_trust_store (c->confinement),
                                                confinement_public (c->confinement), &system };
        c->refusal_programs = joined (s->arena, programs, ARRAY_LEN (programs));
        c->refusal_readable = joined (s->arena, readable, ARRAY_LEN (readable));
    }
    return (struct refusal_walls){ .work_dir = s->places.work_path,
                                   .home_dir = c->spec.folders.home.path,
                                   .temp_dir = c->spec.folders.temp.path,
                                   .programs = c->refusal_programs,
                                   .readable = c->refusal_readable,
                                   .read_only = names_of (s, &s->policy->files.read_only_paths),
                                   .path = list->path,
                                   .may_run_work = c->spec.workdir_exec,
                                   .allows_unix_sockets = confinement_has_sockets (c->confinement),
                                   .memory_bytes = confinement_memory_bytes (c->confinement),
                                   .is_sealed = confinement_has_root (c->confinement),
                                   .reaches = reaches,
                                   .ctx = ctx };
}

void
confine_end (struct session *s)
{
    struct confined *c = steal_ptr (&s->rooms.processes->confined);
    if (! c)
        return;
    commands_free (c->commands);
    confinement_free (c->confinement);
    allow_list_free (&c->network);
    strv_free (&c->env);
    free (c);
}

/* --- the size guard --- */

bool
confine_check_size (struct session *s, struct mur_error **err)
{
    struct confined *c = s->rooms.processes->confined;
    uint64_t now = clock_monotonic_ms ();
    if (! c)
        return true;
    if (! c->is_over && now >= c->measure_at_ms) {
        const struct mount_folders *f = &c->spec.folders;
        uint64_t begun_us = clock_thread_us ();
        c->observed_bytes = folder_size (f->work.path) + folder_size (f->temp.path) +
                            folder_size (f->home.path) +
                            confinement_unlinked_bytes (c->confinement);
        c->is_over = c->observed_bytes > c->workdir_max_bytes;
        /* By its work: on a busy host a look takes long without costing much. */
        uint64_t pause = (clock_thread_us () - begun_us) * MEASURE_SHARE / 1000,
                 ended = clock_monotonic_ms ();
        c->measure_at_ms = ended + (pause < MEASURE_EVERY_MS ? pause : MEASURE_EVERY_MS);
        if (c->measure_at_ms < 2 * ended - now)
            c->measure_at_ms = 2 * ended - now;
    }
    return ! c->is_over ||
           mur_fail (err, E_RUN_013,
                     "the work folder with its temp and home folders holds %llu bytes, more than "
                     "capabilities.resources.workdir_max_bytes (%llu)",
                     (unsigned long long)c->observed_bytes,
                     (unsigned long long)c->workdir_max_bytes);
}
