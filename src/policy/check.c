/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/check.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "manifest/text/yaml_tree.h"
#include "net/allow.h"
#include "policy/policy.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define CONFIG_BYTES_MAX        65536
#define PERSISTENT_TTL_SECS_MAX 900

/* --- E-CAP-001, E-CAP-002 --- */

static bool
check_entries (const struct policy *p, const struct str_list *list, const char *path,
               struct mur_error **err)
{
    for (size_t i = 0; i < list->len; i++) {
        _cleanup_allow_list_ struct allow_list one = { 0 };
        struct mur_error *why = NULL;
        if (allow_list_add (&one, list->items[i], &why))
            continue;
        capsule_manifest_fail (p->manifest, err, E_CAP_001,
                               arena_printf (p->arena, "%s[%zu]", path, i), "%s", why->message);
        if (why->hint)
            mur_hint (err, "%s", why->hint);
        mur_error_free (why);
        return false;
    }
    return true;
}

static bool
check_network (const struct policy *p, struct mur_error **err)
{
    if (! check_entries (p, &p->network.allow, "capabilities.network.allow", err))
        return false;
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct capabilities *c = p->grants[i].entry->capabilities;
        const char *path = arena_printf (p->arena, "artifacts[%zu].capabilities.network.allow", i);
        if (c && c->network && ! check_entries (p, &c->network->allow, path, err))
            return false;
    }
    return true;
}

static bool
check_subpath (const struct policy *p, const char *text, enum diag_code code, const char *path,
               struct mur_error **err)
{
    const char *why;
    _cleanup_free_ char *lowered = subpath_lower (text, &why);
    return lowered ||
           capsule_manifest_fail (p->manifest, err, code, path, "'%s' is refused: %s", text, why);
}

static bool
check_scope (const struct policy *p, struct mur_error **err)
{
    return ! p->files.scope ||
           check_subpath (p, p->files.scope, E_CAP_002, "capabilities.filesystem.scope", err);
}

static bool
check_artifact_scopes (const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const char *path =
            arena_printf (p->arena, "artifacts[%zu].capabilities.filesystem.scope", i);
        if (p->grants[i].scope && ! check_subpath (p, p->grants[i].scope, E_CAP_002, path, err))
            return false;
    }
    return true;
}

/* --- E-CAP-009, E-CAP-011 --- */

static bool
check_state (const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const char *store = p->grants[i].state_store;
        if (! store || segment_is_valid (store))
            continue;
        capsule_manifest_fail (
            p->manifest, err, E_CAP_009,
            arena_printf (p->arena, "artifacts[%zu].capabilities.state.store", i),
            "'%s' of %s cannot name a state store: it must be one path segment that does not begin "
            "with '.'",
            store, p->grants[i].entry->name);
        return mur_hint (err, "without store the capsule's name is used");
    }
    return true;
}

static bool
check_record (const struct policy *p, struct mur_error **err)
{
    static const char rule[] = "it must be one path segment that does not begin with '.'";
    if (p->record_store && ! segment_is_valid (p->record_store))
        return capsule_manifest_fail (p->manifest, err, E_CAP_011, "context.record_store",
                                      "'%s' cannot name a conversation record: %s", p->record_store,
                                      rule);
    const char *context = p->request->context_id;
    return ! context || segment_is_valid (context) ||
           mur_fail (err, E_CAP_011, "--context '%s' cannot name a context: %s", context, rule);
}

/* --- E-CAP-013, E-CAP-020 --- */

static int
compare_tool_names (const void *x, const void *y)
{
    const struct artifact_entry *a = *(const struct artifact_entry *const *)x;
    const struct artifact_entry *b = *(const struct artifact_entry *const *)y;
    int order = strcmp (a->tool_name, b->tool_name);
    return order ? order : (a > b) - (a < b);
}

bool
policy_check_tool_names (const struct capsule_manifest *m, struct mur_error **err)
{
    size_t len = m->artifacts.len;
    _cleanup_free_ const struct artifact_entry **sorted =
        x_new_array (const struct artifact_entry *, len + 1);
    for (size_t i = 0; i < len; i++) {
        const struct artifact_entry *e = sorted[i] = &m->artifacts.items[i];
        if (! name_is_reserved_tool (e->tool_name))
            continue;
        capsule_manifest_fail (
            m, err, E_CAP_013, arena_printf (m->arena, "artifacts[%zu].name", i),
            "%s would be known as '%s', a name the runtime keeps for a tool of its own", e->name,
            e->tool_name);
        return mur_hint (err, "reserved: %s", name_reserved_tools ());
    }
    qsort (sorted, len, sizeof *sorted, compare_tool_names);
    const struct artifact_entry *first = NULL, *second = NULL;
    for (size_t i = 1; i < len; i++)
        if (strcmp (sorted[i - 1]->tool_name, sorted[i]->tool_name) == 0 &&
            (! second || sorted[i] < second)) {
            first = sorted[i - 1];
            second = sorted[i];
        }
    if (! second)
        return true;
    size_t index = (size_t)(second - m->artifacts.items);
    capsule_manifest_fail (m, err, E_CAP_020, arena_printf (m->arena, "artifacts[%zu].name", index),
                           "%s and %s share the name '%s' inside a session", first->name,
                           second->name, second->tool_name);
    return mur_hint (err, "declare only one of them");
}

/* --- E-CAP-016 --- */

bool
policy_check_env (const struct capsule_manifest *m, struct mur_error **err)
{
    const struct capabilities *c = m->capabilities;
    struct str_list allow = c->env ? c->env->allow : (struct str_list){ 0 };
    struct str_list strip = c->shell ? c->shell->strip_env : (struct str_list){ 0 };
    _cleanup_buf_ struct buf names = { 0 };
    _cleanup_strv_ struct strv seen = { 0 };
    for (size_t i = 0; i < allow.len; i++) {
        bool is_builtin;
        const char *pattern = env_stripped_by (allow.items[i], strip.items, strip.len, &is_builtin);
        if (! pattern || seen.len >= 1000 || strv_contains (&seen, allow.items[i]))
            continue;
        strv_push (&seen, allow.items[i]);
        buf_printf (&names, "%s'%s' (%s pattern '%s')", names.len ? ", " : "", allow.items[i],
                    is_builtin ? "credential backstop" : "capabilities.shell.strip_env", pattern);
    }
    if (! names.len)
        return true;
    capsule_manifest_fail (m, err, E_CAP_016, "capabilities.env.allow",
                           "the credential filter would take away %s", names.data);
    return mur_hint (
        err,
        "remove the name; an artifact gets a key through its gateway, never in its environment");
}

/* --- E-CAP-010 --- */

static bool
refuse_config (const struct artifact_entry *e, const struct capsule_manifest *m,
               struct mur_error **err, const char *text)
{
    size_t index = (size_t)(e - m->artifacts.items);
    return capsule_manifest_fail (m, err, E_CAP_010,
                                  arena_printf (m->arena, "artifacts[%zu].config", index),
                                  "of %s: %s", e->name, text);
}

char *
policy_artifact_config (const struct artifact_entry *e, const struct capsule_manifest *m,
                        struct mur_error **err)
{
    const struct yaml_node *n = e->config;
    if (! n)
        return NULL;
    if (n->kind == YAML_NULL)
        return refuse_config (e, m, err, "the block is empty; remove it or give it keys"), NULL;
    if (n->kind != YAML_MAP)
        return refuse_config (e, m, err, "it must be a map of keys"), NULL;
    for (uint32_t i = 0; i < n->len; i++)
        if (n->pairs[i].key->kind != YAML_STRING)
            return refuse_config (e, m, err,
                                  "every key of it must be text; quote the one that is not"),
                   NULL;
    struct buf out = { 0 };
    struct mur_error *why = NULL;
    if (! yaml_put_json (&out, n, E_CAP_010, &why)) {
        refuse_config (e, m, err, why->message);
        mur_error_free (why);
        buf_free (&out);
        return NULL;
    }
    if (out.len > CONFIG_BYTES_MAX) {
        refuse_config (e, m, err,
                       arena_printf (m->arena, "it has %zu bytes as JSON; at most %d are delivered",
                                     out.len, CONFIG_BYTES_MAX));
        buf_free (&out);
        return NULL;
    }
    return buf_steal (&out);
}

static bool
check_configs (const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        _cleanup_free_ char *text = policy_artifact_config (e, p->manifest, err);
        if (e->config && ! text)
            return false;
    }
    return true;
}

/* --- the rest --- */

static bool
check_names (const struct policy *p, struct mur_error **err)
{
    return policy_check_tool_names (p->manifest, err);
}

static bool
check_env (const struct policy *p, struct mur_error **err)
{
    return policy_check_env (p->manifest, err);
}

static bool
check_peer_ttl (const struct policy *p, struct mur_error **err)
{
    const struct exports *exports = p->manifest->exports;
    const struct exported_peer_files *f = exports ? exports->peer_files : NULL;
    if (! f || p->lifecycle.after_task.value != AFTER_SLEEP ||
        (f->max_ttl_is_set && f->max_ttl_secs <= PERSISTENT_TTL_SECS_MAX))
        return true;
    capsule_manifest_fail (p->manifest, err, E_CAP_008, "exports.peer_files.max_ttl",
                           f->max_ttl_is_set
                               ? "%llu s is too long for a capsule that sleeps between tasks"
                               : "a capsule that sleeps between tasks must say it",
                           (unsigned long long)f->max_ttl_secs);
    return mur_hint (err, "set it to at most 900s, or use lifecycle.after_task: exit");
}

static bool
check_queue (const struct policy *p, struct mur_error **err)
{
    return p->lifecycle.task_acceptance.value != ACCEPT_QUEUE ||
           p->lifecycle.queue_depth.value > 0 ||
           capsule_manifest_fail (
               p->manifest, err, E_MAN_003, "lifecycle.queue_depth",
               "0 leaves a queue without room: it must be at least 1 with task_acceptance: queue");
}

static bool
check_staged_runtime (const struct policy *p, struct mur_error **err)
{
    if (! p->commands.shell || ! p->commands.shell->staged_runtime.len ||
        p->containment_floor >= CONTAINMENT_SEALED)
        return true;
    _cleanup_buf_ struct buf names = { 0 };
    for (size_t i = 0; i < p->commands.shell->staged_runtime.len; i++)
        buf_printf (&names, "%s%s", i ? ", " : "",
                    p->commands.shell->staged_runtime.items[i].binary);
    capsule_manifest_fail (p->manifest, err, E_CAP_004, "capabilities.shell.staged_runtime",
                           "%s can only be staged into a sealed root; the floor is '%s'",
                           names.data, containment_name (p->containment_floor));
    return mur_hint (err, "declare capabilities.containment: sealed");
}

static bool
check_read_only (const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < p->files.read_only_paths.len; i++)
        if (! check_subpath (p, p->files.read_only_paths.items[i], E_CAP_012,
                             arena_printf (p->arena, "capabilities.filesystem.read_only[%zu]", i),
                             err))
            return false;
    return true;
}

static bool
check_approvals (const struct policy *p, struct mur_error **err)
{
    const struct approvals *a = p->manifest->approvals;
    if (! a)
        return true;
    for (size_t i = 0; i < a->paths.len; i++)
        if (! check_subpath (p, a->paths.items[i], E_CAP_012,
                             arena_printf (p->arena, "approvals.paths[%zu]", i), err))
            return false;
    return check_entries (p, &a->hosts, "approvals.hosts", err);
}

static bool
holds_skill (const char *dir)
{
    _cleanup_closedir_ DIR *d = opendir (dir);
    for (const struct dirent *e; d && (e = readdir (d));)
        if (strcasecmp (e->d_name, "skill.md") == 0)
            return true;
    return false;
}

static bool
check_sources (const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const char *source = p->grants[i].entry->source;
        if (! source)
            continue;
        const char *path = arena_printf (p->arena, "artifacts[%zu].source", i);
        const char *full = source[0] == '/'
                               ? source
                               : arena_printf (p->arena, "%s/%s", p->request->manifest_dir, source);
        struct stat st;
        if (stat (full, &st) != 0)
            return capsule_manifest_fail (p->manifest, err, E_IO_001, path, "%s: %s", full,
                                          strerror (errno));
        if (S_ISDIR (st.st_mode) && ! holds_skill (full))
            return capsule_manifest_fail (p->manifest, err, E_IO_001, path, "%s holds no skill.md",
                                          full);
    }
    return true;
}

/* --- the orders --- */

typedef bool check_fn (const struct policy *p, struct mur_error **err);

static bool
run_checks (check_fn *const *checks, size_t len, const struct policy *p, struct mur_error **err)
{
    for (size_t i = 0; i < len; i++)
        if (! checks[i](p, err))
            return false;
    return true;
}

bool
policy_check_explain (const struct policy *p, struct mur_error **err)
{
    static check_fn *const checks[] = { check_state, check_configs, check_artifact_scopes };
    return run_checks (checks, ARRAY_LEN (checks), p, err);
}

bool
policy_check_stage (const struct policy *p, const struct containment *c, struct mur_error **err)
{
    static check_fn *const before[] = { check_network, check_scope };
    static check_fn *const after[] = {
        check_state,    check_record,  check_names,
        check_env,      check_configs, check_artifact_scopes,
        check_peer_ttl, check_queue,   check_staged_runtime,
    };
    return run_checks (before, ARRAY_LEN (before), p, err) && (! c || containment_check (c, err)) &&
           run_checks (after, ARRAY_LEN (after), p, err);
}

bool
policy_check_paths (const struct policy *p, struct mur_error **err)
{
    return check_read_only (p, err) && check_approvals (p, err) && check_sources (p, err);
}

bool
policy_check_concern (const struct policy *p, size_t which, bool *is_last, struct mur_error **err)
{
    static check_fn *const concerns[] = { check_artifact_scopes, check_staged_runtime, check_env };
    *is_last = which >= ARRAY_LEN (concerns);
    return *is_last || concerns[which](p, err);
}

/* --- gateway keys --- */

static bool
is_controllers (const struct capsule_manifest *m, const char *name)
{
    for (size_t i = 0; m->control && i < m->control->secrets.len; i++)
        if (strcmp (m->control->secrets.items[i], name) == 0)
            return true;
    return false;
}

/* The driver of alternates alone: without its key the choice is not available, that is all. */
static bool
is_alternate_only (const struct inference *inf, const struct artifact_entry *e)
{
    if (! inf || e == inf->driver_entry)
        return false;
    for (size_t i = 0; i < inf->alternates.len; i++)
        if (inf->alternates.items[i].entry == e)
            return true;
    return false;
}

static bool
is_one_line (const char *key)
{
    for (; *key; key++)
        if ((unsigned char)*key < 0x20 || *key == 0x7f)
            return false;
    return true;
}

bool
policy_check_gateway_keys (const struct policy *p, policy_credential_fn *config_credential,
                           const void *ctx, const char *config_path, struct mur_error **err)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        const char *name = e->gateway ? e->gateway->key_reference : NULL;
        if (! name || is_controllers (p->manifest, name) ||
            is_alternate_only (p->manifest->inference, e))
            continue;
        _cleanup_secret_ struct secret *value =
            config_credential ? config_credential (ctx, name) : NULL;
        const char *variable = getenv (name);
        const char *key = value && secret_len (value) ? secret_reveal (value) : variable;
        if (key && *key && is_one_line (key))
            continue;
        if (key && *key) {
            capsule_manifest_fail (p->manifest, err, E_MAN_003,
                                   arena_printf (p->arena, "artifacts[%zu].gateway.api_key", i),
                                   "the key ${%s} of %s holds a line end or another control "
                                   "character, which no header can carry",
                                   name, e->name);
            return mur_hint (err, "give the key alone, on one line");
        }
        capsule_manifest_fail (
            p->manifest, err, E_MAN_003,
            arena_printf (p->arena, "artifacts[%zu].gateway.api_key", i),
            "%s needs ${%s}, which is neither credentials.%s in %s nor a variable %s", e->name,
            name, name, config_path ? config_path : "~/.murmur/config.yaml", name);
        return mur_hint (err, "mur config set -g credentials.%s <key>, or export %s=<key>", name,
                         name);
    }
    return true;
}
