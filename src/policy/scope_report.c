/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scope_report.h"
#include "base/json_write.h"
#include "policy/warn.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/capsule/capsule_entry.h"
#include "policy/scope_report_internal.h"
#include "policy/server_report.h"

#include <string.h>

/* --- facts --- */

/* What keeps commands from changing a directory of the session, or why nothing does. Truncation is
 * only mediated from ABI 3 on. Landlock takes nothing out of a folder it makes writable: what lies
 * inside the work folder is kept by a mount of its own, where one can be made. */
static struct report_dir
session_dir (struct policy *p, const struct containment *c, const char *path, const char *work_dir)
{
    struct report_dir dir = { .path = path };
    bool is_mounted = c->facts.has_mount_namespace && ! str_eq (work_dir, "/tmp");
    if (c->applied == TIER_SEALED)
        dir.enforced_by = "mountns+landlock";
    else if (c->applied != TIER_LANDLOCK)
        dir.not_protected_because = "no kernel sandbox confines commands here";
    else if (c->facts.landlock_abi < 3)
        dir.not_protected_because =
            "Landlock below ABI 3 does not keep a command from cutting a file to nothing";
    else if (! fs_path_is_within (path, work_dir))
        dir.enforced_by = "landlock";
    else if (is_mounted)
        dir.enforced_by = "mountns+landlock";
    else
        dir.not_protected_because = arena_printf (
            p->arena,
            "it lies inside the work folder %s, which commands may write, and no private mount "
            "keeps it apart",
            work_dir);
    return dir;
}

void
report_facts_fill (struct policy *p, const struct containment *c, struct report_facts *out)
{
    const struct policy_request *request = p->request;
    const char *home = request->home_dir;
    const char *root = request->work_root
                           ? request->work_root
                           : arena_printf (p->arena, "%s/workdir", request->manifest_dir);
    const char *records = arena_printf (p->arena, "%s/records%s/<session-id>", home, root);
    const char *runtime = arena_printf (p->arena, "%s/sessions/<session-id>/runtime", home);
    const bool is_tmp = root && strcmp (root, "/tmp") == 0;
    *out = (struct report_facts){
        .containment = c,
        .runtime_dir = session_dir (p, c, runtime, root),
        .records_dir = session_dir (p, c, records, root),
        .temp_path = arena_printf (p->arena, "%s/tmp", records),
        .io_max_status = "not-required",
        .io_max_reason = "nothing in this capsule starts a native process",
    };
    if (c->applied == TIER_SEALED)
        out->temp_mapped_by = "composed-root";
    else if (c->facts.has_mount_namespace && ! is_tmp)
        out->temp_mapped_by = "mount-namespace";
    else
        out->temp_not_mapped_because = is_tmp
                                           ? "the work folder is /tmp itself"
                                           : "no private mount namespace can be made for commands";
    if (policy_may_run_native (p, false)) {
        out->io_max_status = "not-probed";
        out->io_max_reason = "the limit is written when the session's control group is made";
    }
}

/* --- parts both forms share --- */

static const char *
report_restriction (const struct containment *c)
{
    static const char *const words[] = {
        [TIER_NONE] = "advisory",
        [TIER_SECCOMP] = "advisory",
        [TIER_LANDLOCK] = "enforced",
        [TIER_SEALED] = "absent",
    };
    return words[c->applied];
}

/* What is left where Landlock and the filter stand for namespaces. */
static void
push_walled (const struct containment *c, struct strv *out)
{
    strv_push (out,
               "commands run without namespaces: they reach hosts of network.allow through a "
               "proxy alone (http_proxy, https_proxy), look up no name, and can offer no port");
    strv_push (out, "commands share the host's /tmp and see that other processes of this user run; "
                    "/dev/shm and pseudo terminals are closed to them, and read_only paths are "
                    "judged by the words of a command alone");
    strv_push (out,
               "with network.unix_sockets sockets of the host that have a path can be reached");
    if (c->facts.landlock_abi < 6)
        strv_printf (out,
                     "Landlock ABI %d bounds neither signals (6): processes of this user that are "
                     "not the runtime's can be signalled; nor, with network.unix_sockets, abstract "
                     "sockets",
                     c->facts.landlock_abi);
}

void
report_not_protected (const struct report_facts *f, struct strv *out)
{
    if (f->containment->applied != TIER_SEALED) {
        strv_push (out, f->containment->applied == TIER_LANDLOCK
                            ? "a path a command is denied is not absent: its name, size and "
                              "existence can still be seen"
                            : "nothing keeps a command from the files of this user: the "
                              "restriction is advisory");
        strv_push (
            out,
            "a path written with ~ proves nothing: HOME of a command is a folder of the session");
    }
    const char *const *missing = f->containment->facts.missing_walls;
    for (size_t i = 0; missing && missing[i]; i++)
        strv_push (out, missing[i]);
    const struct {
        const char *name;
        const struct report_dir *dir;
    } dirs[] = { { "runtime directory", &f->runtime_dir },
                 { "records directory", &f->records_dir } };
    if (f->containment->space == SPACE_WALLED)
        push_walled (f->containment, out);
    if (f->containment->space == SPACE_OPEN)
        strv_push (out,
                   "commands run without namespaces (--unconfined): they reach every address, "
                   "network.allow bounds WebAssembly guests alone; they see the other processes of "
                   "this user and the host's /tmp");
    for (size_t i = 0; i < ARRAY_LEN (dirs); i++)
        if (! dirs[i].dir->enforced_by)
            strv_printf (out, "a command can change the %s: %s", dirs[i].name,
                         dirs[i].dir->not_protected_because);
}

/* "whole-workdir", "scoped-subtree", "nothing", "records-hooks". Static. */
static const char *
report_surface (const struct artifact_grant *g)
{
    return g->opens_records_hooks ? "records-hooks"
           : g->scope             ? "scoped-subtree"
           : g->opens_work_dir    ? "whole-workdir"
                                  : "nothing";
}

const char *
report_runtime_reach (const struct policy *p, const struct report_facts *f, size_t i)
{
    const struct artifact_grant *g = &p->grants[i];
    if (g->entry->role != ROLE_TOOL)
        return NULL;
    if (f->artifact_is_native && f->artifact_is_native[i])
        return "environment";
    if (g->scope)
        return NULL;
    return f->artifact_is_resolved && f->artifact_is_resolved[i] ? "murmur-runtime" : "unresolved";
}

void
report_interpreters (const struct policy *p, struct strv *out)
{
    for (size_t i = 0; p->commands.shell && i < p->commands.shell->interpreter_runtime.len; i++) {
        const struct interpreter_runtime *g = &p->commands.shell->interpreter_runtime.items[i];
        for (size_t j = 0; j < g->dirs.len; j++)
            strv_printf (out, "%s: %s%s", g->binary, g->dirs.items[j].path,
                         g->dirs.items[j].list_dir.value ? " (list_dir)" : "");
    }
}

void
report_staged (const struct policy *p, struct strv *out)
{
    for (size_t i = 0; p->commands.shell && i < p->commands.shell->staged_runtime.len; i++) {
        const struct staged_runtime *g = &p->commands.shell->staged_runtime.items[i];
        strv_printf (out, "%s: %s (pin: %s)", g->binary, g->source_path, g->pin);
    }
}

char *
report_state_path (const struct policy *p, const char *store)
{
    return x_asprintf ("%s/state/%s", p->request->home_dir, store);
}

const struct report_write report_writes[] = {
    { "peer-in", "directory", "peer-fetch" },
    { "out", "directory", "script-session" },
    { NULL, NULL, NULL },
};

/* --- JSON --- */

static json_t *
texts (const struct str_list *list)
{
    json_t *array = json_array ();
    for (size_t i = 0; i < list->len; i++)
        json_array_append_new (array, json_string_lossy (list->items[i], strlen (list->items[i])));
    return array;
}

static json_t *
lines (struct strv *list)
{
    json_t *array = json_array ();
    for (size_t i = 0; i < list->len; i++)
        json_array_append_new (array, json_string_lossy (list->items[i], strlen (list->items[i])));
    strv_free (list);
    return array;
}

static void
add_containment (json_t *o, const struct policy *p, const struct containment *c)
{
    json_set_string (o, "declared_containment", containment_name (c->declared));
    json_set_string (o, "achieved_containment", containment_name (c->achieved));
    json_set_string (o, "host_containment", containment_name (c->host));
    json_set_bool (o, "floor_met", c->floor_met);
    if (c->space == SPACE_OPEN)
        json_set_bool (o, "unconfined", true);
    if (c->space == SPACE_WALLED)
        json_set_bool (o, "without_namespaces", true);
    if (! c->floor_met)
        json_set_string (o, "shortfall_reason", c->shortfall_reason);
    json_set_string (o, "enforcement_tier", containment_tier_name (c->applied));
    json_t *covers = json_pack ("[sss]", "shell", "plan-shell-steps", "native-tools");
    if (policy_confines_harness (p))
        json_array_append_new (covers, json_string ("harness"));
    json_object_set_new (o, "mechanism_covers", covers);
    json_set_string (o, "userns_grant", c->facts.userns_grant);
    json_object_set_new (o, "landlock_abi",
                         c->facts.landlock_abi ? json_integer (c->facts.landlock_abi)
                                               : json_null ());
}

static void
add_filesystem (json_t *o, const struct policy *p, const struct report_facts *f)
{
    json_set_string (o, "filesystem_scope", p->files.scope);
    json_set_bool (o, "workdir_exec", p->files.exec_allowed);
    if (p->files.exec_is_walled)
        json_set_bool (o, "workdir_exec_walled", true);
    json_object_set_new (o, "read_only_paths", texts (&p->files.read_only_paths));
    const struct str_list interpreters = policy_advisory_interpreters (p);
    json_object_set_new (o, "read_only_advisory_for", texts (&interpreters));
    json_t *preopens = json_array ();
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_grant *g = &p->grants[i];
        if (g->entry->role == ROLE_SKILL)
            continue;
        json_t *one = json_object ();
        json_set_string (one, "artifact", g->entry->name);
        json_set_string (one, "role", artifact_role_name (g->entry->role));
        json_set_string (one, "scope", g->scope);
        json_set_string (one, "surface", report_surface (g));
        json_set_string (one, "runtime_dir_reach", report_runtime_reach (p, f, i));
        json_array_append_new (preopens, one);
    }
    json_object_set_new (o, "preopens", preopens);
}

static void
add_capabilities (json_t *o, const struct policy *p)
{
    json_object_set_new (o, "network_allow", texts (&p->network.allow));
    json_set_bool (o, "unix_sockets", p->network.unix_sockets_allowed);
    if (p->network.host_sockets.len)
        json_object_set_new (o, "host_sockets", texts (&p->network.host_sockets));
    json_object_set_new (o, "shell_allow", texts (&p->commands.allow));
    json_object_set_new (o, "spawn_allow", texts (&p->spawn_allow));
    json_object_set_new (o, "env_allow", texts (&p->env_allow));
    json_set_bool (o, "plan_submit", p->plan_submit);
    json_object_set_new (o, "install_skill", texts (&p->install.skill));
    json_object_set_new (o, "install_tool", texts (&p->install.tool));
    json_object_set_new (o, "install_from",
                         ! p->install.is_declared  ? json_array ()
                         : p->install.from_sources ? json_pack ("[ss]", "stores", "sources")
                                                   : json_pack ("[s]", "stores"));
    struct strv interpreters = { 0 };
    report_interpreters (p, &interpreters);
    json_object_set_new (o, "interpreter_runtime_grants", lines (&interpreters));
    json_object_set_new (o, "derived_interpreter_runtime", texts (&p->derived.interpreter_runtime));
    if (p->derived.program_parts.len)
        json_object_set_new (o, "program_parts", texts (&p->derived.program_parts));
    json_object_set_new (o, "trust_store", texts (&p->derived.trust_store));
    struct strv servers = { 0 };
    report_servers (p, &servers);
    if (servers.len)
        json_object_set_new (o, "servers_of_tools", lines (&servers));
    json_t *approvals = approval_rules_json (&p->approvals, false);
    if (approvals)
        json_object_set_new (o, "approvals", approvals);
}

static void
add_exports (json_t *o, const struct policy *p)
{
    const struct exports *e = p->manifest->exports;
    json_t *files = json_null (), *peer_files = json_null ();
    if (e && e->files)
        files = json_pack ("{s:s, s:s, s:I}", "root", e->files->root, "mode", e->files->mode,
                           "max_bytes", (json_int_t)e->files->max_bytes);
    if (e && e->peer_files)
        peer_files = json_pack ("{s:s, s:I, s:I}", "root", e->peer_files->root, "max_ttl_secs",
                                (json_int_t)e->peer_files->max_ttl_secs, "max_bytes",
                                (json_int_t)e->peer_files->max_bytes);
    json_object_set_new (o, "exports_files", files);
    json_object_set_new (o, "peer_files", peer_files);
    json_set_bool (o, "peer_tasks", e && e->peer_tasks && e->peer_tasks->accept.value);
    json_object_set_new (o, "peer_fetch_allow", texts (&p->network.peer_fetch_allow));
}

static void
add_artifacts (json_t *o, const struct policy *p)
{
    json_t *stores = json_array (), *configured = json_array (), *writes = json_array ();
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_grant *g = &p->grants[i];
        if (g->entry->config)
            json_array_append_new (configured, json_string (g->entry->name));
        if (! g->state_store)
            continue;
        _cleanup_free_ char *path = report_state_path (p, g->state_store);
        json_t *one = json_object ();
        json_set_string (one, "artifact", g->entry->name);
        json_set_string (one, "store", g->state_store);
        json_set_string (one, "host_path", path);
        json_array_append_new (stores, one);
    }
    for (const struct report_write *w = report_writes; w->path; w++)
        json_array_append_new (writes, json_pack ("{s:s, s:s, s:s}", "path", w->path, "kind",
                                                  w->kind, "condition", w->condition));
    struct strv staged = { 0 };
    report_staged (p, &staged);
    json_object_set_new (o, "state_stores", stores);
    json_object_set_new (o, "configured_artifacts", configured);
    json_object_set_new (o, "staged_runtime_grants", lines (&staged));
    json_object_set_new (o, "runtime_writes", writes);
}

static json_t *
directory (const struct report_dir *d)
{
    json_t *o = json_object ();
    json_set_string (o, "path", d->path);
    json_set_bool (o, "read_only_to_commands", d->enforced_by != NULL);
    json_set_string (o, "enforced_by", d->enforced_by);
    json_set_string (o, "not_protected_because", d->enforced_by ? NULL : d->not_protected_because);
    return o;
}

static void
add_places (json_t *o, const struct policy *p, const struct report_facts *f)
{
    json_t *io = json_object (), *boundary = json_object (), *temp = json_object ();
    json_set_u64 (io, "declared_bytes_per_sec", p->resources.cgroup_io_bytes_per_sec.value);
    json_set_string (io, "status", f->io_max_status);
    if (f->io_max_reason)
        json_set_string (io, "reason", f->io_max_reason);
    struct strv statements = { 0 };
    report_not_protected (f, &statements);
    json_set_string (boundary, "restriction", report_restriction (f->containment));
    json_object_set_new (boundary, "not_protected", lines (&statements));
    json_set_string (temp, "path", f->temp_path);
    json_set_string (temp, "tmpdir", f->temp_mapped_by ? "/tmp" : f->temp_path);
    json_set_bool (temp, "tmp_mapped", f->temp_mapped_by != NULL);
    json_set_string (temp, "mapped_by", f->temp_mapped_by);
    json_set_string (temp, "not_mapped_because",
                     f->temp_mapped_by ? NULL : f->temp_not_mapped_because);
    json_object_set_new (o, "io_max", io);
    json_object_set_new (o, "filesystem_boundary", boundary);
    json_object_set_new (o, "runtime_dir", directory (&f->runtime_dir));
    json_object_set_new (o, "records_dir", directory (&f->records_dir));
    json_object_set_new (o, "temp_dir", temp);
}

json_t *
scope_report_json (const struct policy *p, const struct report_facts *facts)
{
    json_t *o = json_object ();
    add_containment (o, p, facts->containment);
    add_filesystem (o, p, facts);
    add_capabilities (o, p);
    add_exports (o, p);
    add_artifacts (o, p);
    add_places (o, p, facts);
    return o;
}
