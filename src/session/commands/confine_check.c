/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/confine_check.h"

#include "base/alloc.h"
#include "sandbox/host/host.h"
#include "sandbox/kernel/exec_allowlist.h"
#include "session/grants.h"
#include "session/state/session.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    return ! blocker ||
           mur_fail (err, E_CAP_005, "no network namespace can be made here: %s", blocker);
}

/* The bare name of the program a script asks for, one `env` hop taken; NULL when it is no script.
 */
static char *
script_interpreter (const char *path)
{
    char head[513];
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, head, sizeof head - 1);
    if (n < 2 || head[0] != '#' || head[1] != '!')
        return NULL;
    head[n] = '\0';
    head[strcspn (head, "\n")] = '\0';
    char *rest = head + 2;
    bool was_env = false;
    for (char *word; (word = strsep (&rest, " \t\r"));) {
        if (! *word || (was_env && (*word == '-' || strchr (word, '='))))
            continue;
        const char *slash = strrchr (word, '/');
        const char *name = slash ? slash + 1 : word;
        if (was_env || ! str_eq (name, "env"))
            return x_strdup (name);
        was_env = true;
    }
    return x_strdup ("env");
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

bool
confine_check_entries (const struct policy *p, struct mur_error **err)
{
    if (! p->shell || p->containment_floor < CONTAINMENT_SEALED)
        return true;
    _cleanup_buf_ struct buf lost = { 0 };
    for (size_t i = 0; i < p->shell_allow.len; i++) {
        const char *name = p->shell_allow.items[i];
        _cleanup_free_ char *path = exec_find_on_path (name, getenv ("PATH"));
        _cleanup_free_ char *interpreter = path ? script_interpreter (path) : NULL;
        if (interpreter && ! is_reachable (p->shell, name, path, interpreter))
            buf_printf (&lost, "%s%s (%s, run by %s)", lost.len ? ", " : "", name, path,
                        interpreter);
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
    size_t count = p->shell ? p->shell->staged_runtime.len : 0;
    const char **names = arena_new_array (p->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = p->shell->staged_runtime.items[i].binary;
    return names;
}
