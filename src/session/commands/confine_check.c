/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/confine_check.h"

#include "base/alloc.h"
#include "sandbox/host/host.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/programs/path_lists.h"
#include "sandbox/programs/recipes.h"
#include "sandbox/programs/script.h"
#include "sandbox/programs/shims.h"
#include "session/grants.h"
#include "session/state/session.h"

#include <string.h>

bool
session_may_run_native (const struct session *s)
{
    bool has_native = false;
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        has_native |= s->kit.artifacts[i].resolved && s->kit.artifacts[i].resolved->is_native;
    return policy_may_run_native (s->policy, has_native);
}

bool
confine_check_host (const struct session *s, bool has_native_artifact, struct mur_error **err)
{
    if (! policy_may_run_native (s->policy, has_native_artifact))
        return true;
    _cleanup_free_ char *blocker = host_probe_network_blocker (host_probe_once ());
    if (! blocker || host_decide (s->asked->decision)->space != SPACE_OWN)
        return true;
    mur_fail (err, E_CAP_005, "no network namespace can be made here: %s", blocker);
    return mur_hint (
        err,
        "Landlock of ABI 4 (Linux 6.7) stands for one; or accept commands that the network rules do not bound: --unconfined, "
        "`unconfined: true` in ~/.murmur/config.yaml");
}

/* The bare name of the program a script asks for, one `env` hop taken; NULL when it is no script.
 */
static char *
script_interpreter (const char *path)
{
    _cleanup_strv_ struct strv words = { 0 };
    script_interpreters (path, &words);
    const char *last = words.len ? words.items[words.len - 1] : NULL;
    const char *slash = last ? strrchr (last, '/') : NULL;
    return last ? x_strdup (slash ? slash + 1 : last) : NULL;
}

static bool
is_reachable (const struct cap_shell *shell, const char *name, const char *path,
              const char *interpreter)
{
    static const char *const in_every_root[] = { "/usr",   "/bin",   "/sbin",   "/lib",
                                                 "/lib32", "/lib64", "/libx32", NULL };
    bool is_held = path_is_below_any (path, in_every_root);
    for (size_t i = 0; i < shell->staged_runtime.len && ! is_held; i++) {
        const struct staged_runtime *g = &shell->staged_runtime.items[i];
        const char *const roots[] = { g->source_path, NULL };
        is_held = str_eq (g->binary, name) || str_eq (g->binary, interpreter) ||
                  path_is_below_any (path, roots);
    }
    for (size_t i = 0; i < shell->interpreter_runtime.len && ! is_held; i++) {
        const struct interpreter_runtime *g = &shell->interpreter_runtime.items[i];
        is_held = str_eq (g->binary, name) || str_eq (g->binary, interpreter);
        for (size_t d = 0; d < g->dirs.len && ! is_held; d++) {
            const char *const roots[] = { g->dirs.items[d].path, NULL };
            is_held = path_is_below_any (path, roots);
        }
    }
    return is_held;
}

/* Nothing a manager's script leads to, or a script the sealed root cannot run: what is wrong with
 * one name goes to the end of <lost>, in words. */
static void
check_entry (const struct policy *p, const char *name, struct buf *lost, struct buf *shims)
{
    _cleanup_free_ char *candidate = exec_find_candidate (name, getenv ("PATH"));
    _cleanup_free_ char *real = NULL, *why = NULL;
    enum shim_kind kind =
        candidate ? shim_resolve (name, candidate, p->request->work_root, &real, &why) : SHIM_NONE;
    if (kind == SHIM_LOST)
        buf_printf (shims, "%s%s", shims->len ? "; " : "", why);
    if (kind != SHIM_NONE || p->containment_floor < CONTAINMENT_SEALED)
        return;
    _cleanup_free_ char *path = exec_find_on_path (name, getenv ("PATH"));
    _cleanup_free_ char *interpreter = path ? script_interpreter (path) : NULL;
    _cleanup_free_ char *own = interpreter ? recipes_own_prefix (path) : NULL;
    /* A package of node's brings its folder and its interpreter, wherever it was installed. */
    bool is_package = path && strstr (path, "/node_modules/");
    if (interpreter && ! own && ! is_package &&
        ! is_reachable (p->commands.shell, name, path, interpreter))
        buf_printf (lost, "%s%s (%s, run by %s)", lost->len ? ", " : "", name, path, interpreter);
}

bool
confine_check_entries (const struct policy *p, struct mur_error **err)
{
    _cleanup_buf_ struct buf lost = { 0 }, shims = { 0 };
    for (size_t i = 0; p->commands.shell && i < p->commands.allow.len; i++)
        check_entry (p, p->commands.allow.items[i], &lost, &shims);
    if (shims.len) {
        capsule_manifest_fail (p->manifest, err, E_CAP_006, "capabilities.shell.allow", "%s",
                               shims.data);
        return mur_hint (err, "or put the folder of a real program before the shims on PATH");
    }
    if (! lost.len)
        return true;
    capsule_manifest_fail (p->manifest, err, E_CAP_006, "capabilities.shell.allow",
                           "a sealed root holds neither these scripts nor what runs them: %s",
                           lost.data);
    return mur_hint (err, "grant the interpreter in interpreter_runtime or staged_runtime");
}

void
confine_cgroup_limits (const struct policy *p, const char *io_path, struct cgroup_limits *out)
{
    const struct cap_resources *r = &p->resources;
    *out = (struct cgroup_limits){ .memory_bytes = r->cgroup_memory_bytes.value,
                                   .pids_max = r->cgroup_pids_max.value,
                                   .cpu_percent = r->cgroup_cpu_percent.value,
                                   .io_bytes_per_sec = r->cgroup_io_bytes_per_sec.value,
                                   .io_path = io_path };
}

const char *const *
confine_staged_names (const struct policy *p)
{
    size_t count = p->commands.shell ? p->commands.shell->staged_runtime.len : 0;
    const char **names = arena_new_array (p->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = p->commands.shell->staged_runtime.items[i].binary;
    return names;
}
