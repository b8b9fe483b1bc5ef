/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/warn.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/door_methods.h"
#include "manifest/text/yaml_tree.h"
#include "net/allow.h"
#include "net/url.h"
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

#define WARNINGS_MAX 1000 /* of one kind: a longer list tells a person nothing more */

/* --- W-SEC-032 --- */

static bool
address_is_exposed (const char *bind_addr)
{
    if (! bind_addr)
        return false;
    _cleanup_free_ char *bracketed = x_asprintf ("[%s]", bind_addr);
    return ! host_is_loopback (bind_addr) && ! host_is_loopback (bracketed);
}

static char *
served_methods (const struct policy *p)
{
    bool takes_tasks = p->lifecycle.task_acceptance.value != ACCEPT_NONE;
    struct buf out = { 0 };
    for (size_t i = 0; i < DOOR_METHOD_COUNT; i++)
        if (takes_tasks || ! door_methods[i].needs_tasks)
            buf_printf (&out, "%s%s", out.len ? ", " : "", door_methods[i].name);
    return buf_steal (&out);
}

static char *
door_tools (const struct policy *p)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        bool is_visible = e->role == ROLE_TOOL ||
                          (e->role == ROLE_SKILL && e != p->manifest->inference->prompt_entry);
        if (is_visible)
            buf_printf (&out, "%s%s", out.len ? ", " : "", e->name);
    }
    return buf_steal (&out);
}

void
policy_warn_door (const struct policy *p, bool to_stdout)
{
    const struct capsule_manifest *m = p->manifest;
    bool is_public = ! m->network || ! m->network->authentication;
    if (! m->inference || ! is_public || ! address_is_exposed (p->request->bind_addr))
        return;
    _cleanup_free_ char *methods = served_methods (p);
    _cleanup_free_ char *tools = door_tools (p);
    bool has_files = m->exports && m->exports->files;
    bool has_peer_files = m->exports && m->exports->peer_files;
    _cleanup_free_ char *line =
        x_asprintf ("warning[W-SEC-032]: the door on '%s' is open to whoever reaches it: "
                    "network.authentication is not declared. "
                    "It serves %s; its card publishes the session id, tools [%s], shell: %s, "
                    "network: %s, planes [%s%s%s] "
                    "(mur explain W-SEC-032)",
                    p->request->bind_addr, methods, tools, p->commands.allow.len ? "true" : "false",
                    p->network.allow.len ? "true" : "false", has_files ? "files" : "",
                    has_files && has_peer_files ? ", " : "", has_peer_files ? "peer_files" : "");
    if (to_stdout)
        diag_stdout_line ("%s", line);
    else
        diag_stderr_line ("%s", line);
}

/* --- W-SEC-024, 025, 027, 030 --- */

static void
warn_credential_names (const struct policy *p)
{
    _cleanup_strv_ struct strv seen = { 0 };
    bool sleeps = p->lifecycle.after_task.value == AFTER_SLEEP;
    for (size_t i = 0; i < p->env_allow.len && seen.len < WARNINGS_MAX; i++) {
        const char *name = p->env_allow.items[i];
        bool is_builtin;
        if (! env_name_is_credential_shaped (name) || env_name_is_runtime_owned (name) ||
            strv_contains (&seen, name) ||
            env_stripped_by (name, p->commands.strip_env.items, p->commands.strip_env.len,
                             &is_builtin))
            continue;
        strv_push (&seen, name);
        diag_warn (DIAG_RUNTIME, W_SEC_024,
                   "capabilities.env.allow hands %s, named like a credential, to every guest%s",
                   name,
                   sleeps ? "; the capsule sleeps between tasks, so it is held for as long" : "");
    }
}

/* An entry of network.allow by its host. */
struct host_entry {
    char *host; /* owned */
    size_t index;
};

static int
compare_hosts (const void *x, const void *y)
{
    const struct host_entry *a = x, *b = y;
    int order = strcmp (a->host, b->host);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static size_t
hosts_of (const struct str_list *allow, struct host_entry *out)
{
    size_t len = 0;
    for (size_t i = 0; i < allow->len; i++) {
        _cleanup_allow_list_ struct allow_list one = { 0 };
        if (allow_list_add (&one, allow->items[i], NULL))
            out[len++] = (struct host_entry){ x_strdup (one.rules[0].host), i };
    }
    qsort (out, len, sizeof *out, compare_hosts);
    return len;
}

static void
warn_gateway_hosts (const struct policy *p)
{
    _cleanup_free_ struct host_entry *hosts =
        x_new_array (struct host_entry, p->network.allow.len + 1);
    size_t len = hosts_of (&p->network.allow, hosts), printed = 0;
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct gateway_block *g = p->grants[i].entry->gateway;
        size_t low = 0, high = g ? len : 0;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (strcmp (hosts[middle].host, g->endpoint.host) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; g && low < len && strcmp (hosts[low].host, g->endpoint.host) == 0; low++)
            if (printed++ < WARNINGS_MAX)
                diag_warn (DIAG_RUNTIME, W_SEC_025,
                           "capabilities.network.allow[%zu] also names %s, the host of the gateway "
                           "of %s: guests reach it past the gateway",
                           hosts[low].index, g->endpoint.host, p->grants[i].entry->name);
    }
    for (size_t i = 0; i < len; i++)
        free (hosts[i].host);
}

/* The same of an entry whose own list is what its guest may reach. */
static void
warn_own_gateway_hosts (const struct policy *p)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_grant *grant = &p->grants[i];
        const struct gateway_block *g = grant->entry->gateway;
        for (size_t j = 0; g && grant->has_own_network && j < grant->network.len; j++) {
            _cleanup_allow_list_ struct allow_list one = { 0 };
            if (! allow_list_add (&one, grant->network.items[j], NULL) ||
                strcmp (one.rules[0].host, g->endpoint.host) != 0)
                continue;
            diag_warn (DIAG_RUNTIME, W_SEC_025,
                       "artifacts[%zu].capabilities.network.allow also names %s, the host of the "
                       "gateway of %s: it is reached past the gateway",
                       i, g->endpoint.host, grant->entry->name);
            break;
        }
    }
}

static bool
key_can_rotate (const struct gateway_block *g, policy_credential_fn *config_credential,
                const void *ctx)
{
    if (! g->key_reference || ! config_credential)
        return false;
    _cleanup_secret_ struct secret *value = config_credential (ctx, g->key_reference);
    return value && secret_len (value);
}

/* A key the environment does not hold either: its absence is reported where it matters. */
static bool
is_nowhere (const struct gateway_block *g)
{
    const char *value = g->key_reference ? getenv (g->key_reference) : NULL;
    return g->key_reference && (! value || ! value[0]);
}

static bool
is_controllers (const struct capsule_manifest *m, const char *name)
{
    for (size_t i = 0; name && m->control && i < m->control->secrets.len; i++)
        if (strcmp (m->control->secrets.items[i], name) == 0)
            return true;
    return false;
}

static void
warn_launch_only_keys (const struct policy *p, policy_credential_fn *config_credential,
                       const void *ctx)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        const struct gateway_block *g = e->gateway;
        if (! g || g->is_keyless || is_controllers (p->manifest, g->key_reference) ||
            key_can_rotate (g, config_credential, ctx) || is_nowhere (g))
            continue;
        if (g->key_reference)
            diag_warn (DIAG_RUNTIME, W_SEC_027,
                       "the gateway key of %s comes from the environment (%s) and is read only at "
                       "launch; credentials.%s in the configuration can be changed while it runs",
                       e->name, g->key_reference, g->key_reference);
        else
            diag_warn (DIAG_RUNTIME, W_SEC_027,
                       "the gateway key of %s is written in the manifest and is read only at "
                       "launch; use ${NAME} and credentials.NAME in the configuration",
                       e->name);
    }
}

static bool
is_metered (const struct inference *inf, const struct artifact_entry *e)
{
    if (! inf)
        return false;
    bool is_metered = e == inf->driver_entry;
    for (size_t i = 0; i < inf->alternates.len; i++)
        is_metered = is_metered || e == inf->alternates.items[i].entry;
    return is_metered;
}

static void
warn_unmetered (const struct policy *p)
{
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        if (e->gateway && ! is_metered (p->manifest->inference, e))
            diag_warn (DIAG_RUNTIME, W_SEC_030,
                       "what %s spends through its gateway is not counted by any spend ceiling",
                       e->name);
    }
}

void
policy_warn_parse (const struct policy *p, policy_credential_fn *config_credential, const void *ctx)
{
    warn_credential_names (p);
    warn_gateway_hosts (p);
    warn_own_gateway_hosts (p);
    warn_launch_only_keys (p, config_credential, ctx);
    warn_unmetered (p);
}

/* --- W-SEC-014, 016 --- */

void
policy_warn_inert (const struct policy *p)
{
    if (p->state_declared)
        diag_warn (DIAG_RUNTIME, W_SEC_014,
                   "capabilities.state of the capsule opens nothing; declare it on the artifact "
                   "that keeps state");
    if (p->conversation_declared)
        diag_warn (DIAG_RUNTIME, W_SEC_016,
                   "capabilities.conversation of the capsule grants nothing; declare it on the "
                   "hook that reads it");
}

/* --- W-SEC-006, 007, 008 --- */

static void
add_key (struct buf *out, bool is_there, const char *key)
{
    if (is_there)
        buf_printf (out, "%s%s", out->len ? ", " : "", key);
}

/* The sub-blocks of an entry that have no effect for its role. */
static void
list_inert (const struct artifact_entry *e, struct buf *out)
{
    const struct capabilities *c = e->capabilities;
    bool is_hook = e->role == ROLE_HOOK, is_server = e->role == ROLE_MCP;
    add_key (out, c->shell && ! is_server, "capabilities.shell");
    add_key (out, c->spawn, "capabilities.spawn");
    add_key (out, c->env, "capabilities.env");
    if (c->limits && (is_hook || is_server)) {
        add_key (out, c->limits->memory_bytes.is_set, "capabilities.limits.memory_bytes");
        add_key (out, c->limits->table_elements.is_set, "capabilities.limits.table_elements");
        add_key (out, c->limits->instances.is_set, "capabilities.limits.instances");
    }
    add_key (out, c->limits && ! is_hook && ! is_server, "capabilities.limits");
    add_key (out, c->resources && ! is_server, "capabilities.resources");
    add_key (out, c->written_containment, "capabilities.containment");
}

static void
warn_entry (const struct artifact_grant *g)
{
    const struct artifact_entry *e = g->entry;
    if (g->dropped.len) {
        _cleanup_buf_ struct buf list = { 0 };
        for (size_t i = 0; i < g->dropped.len; i++)
            add_key (&list, true, g->dropped.items[i]);
        diag_warn (DIAG_RUNTIME, W_SEC_007,
                   "%s: outside capabilities.network.allow of the capsule and dropped: %s",
                   e->tool_name, list.data);
    }
    if (! e->capabilities || e->role == ROLE_SKILL)
        return;
    _cleanup_buf_ struct buf inert = { 0 };
    list_inert (e, &inert);
    if (inert.len)
        diag_warn (DIAG_RUNTIME, e->role == ROLE_HOOK ? W_SEC_006 : W_SEC_008,
                   "%s: no effect on a %s: %s", e->tool_name, artifact_role_name (e->role),
                   inert.data);
}

void
policy_warn_native_entry (const struct artifact_entry *e)
{
    if (e->capabilities)
        diag_warn (DIAG_RUNTIME, W_SEC_008,
                   "%s: its payload is native, so capabilities on its entry narrow nothing",
                   e->tool_name);
    if (e->config)
        diag_warn (DIAG_RUNTIME, W_SEC_015,
                   "%s: its payload is native, so config on its entry is delivered to nobody",
                   e->tool_name);
}

/* --- W-SEC-009, 011, 017 --- */

static bool
is_interpreter (const char *binary)
{
    static const char *const names[] = {
        "sh",   "bash",    "dash",   "ash",     "zsh",  "ksh",   "mksh",    "fish", "csh",
        "tcsh", "busybox", "python", "python3", "perl", "ruby",  "node",    "deno", "bun",
        "php",  "awk",     "gawk",   "mawk",    "lua",  "tclsh", "Rscript",
    };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strcmp (names[i], binary) == 0)
            return true;
    return str_starts (binary, "python3.") || str_starts (binary, "python2");
}

struct str_list
policy_advisory_interpreters (const struct policy *p)
{
    struct str_list list = { .items = arena_new_array (p->arena, const char *,
                                                       p->commands.allow.len + 1) };
    for (size_t i = 0; p->files.read_only_paths.len && i < p->commands.allow.len; i++)
        if (is_interpreter (p->commands.allow.items[i]))
            list.items[list.len++] = p->commands.allow.items[i];
    return list;
}

size_t
policy_warn_programs (const struct policy *p, enum diag_source source)
{
    size_t count = 0;
    for (size_t i = 0; p->commands.shell && i < p->commands.shell->interpreter_runtime.len;
         i++, count++) {
        const struct interpreter_runtime *g = &p->commands.shell->interpreter_runtime.items[i];
        _cleanup_buf_ struct buf dirs = { 0 };
        for (size_t d = 0; d < g->dirs.len; d++)
            buf_printf (&dirs, "%s%s", d ? ", " : "", g->dirs.items[d].path);
        diag_warn (source, W_SEC_009,
                   "capabilities.shell.interpreter_runtime ties %s to the layout of this host: %s",
                   g->binary, dirs.data ? dirs.data : "");
    }
    bool is_unbounded = p->files.exec_allowed && ! p->files.exec_is_walled;
    if (is_unbounded)
        diag_warn (source, W_SEC_011,
                   "capabilities.filesystem.workdir_exec lets files of the work folder run, so "
                   "capabilities.shell.allow bounds nothing");
    return count + is_unbounded;
}

/* A command counts by its first word, a capsule by its bare name. */
static bool
asks_of_something (const struct policy *p, const struct approval_rule *r)
{
    const struct str_list *granted[] = { [APPROVAL_COMMAND] = &p->commands.allow,
                                         [APPROVAL_HOST] = &p->network.allow,
                                         [APPROVAL_CAPSULE] = &p->spawn_allow };
    if (r->is_inherited || r->kind >= ARRAY_LEN (granted) || ! granted[r->kind])
        return true;
    const char *slash = strrchr (r->text, '/');
    _cleanup_free_ char *meant =
        r->kind == APPROVAL_COMMAND ? x_strndup (r->text, strcspn (r->text, " \t"))
        : r->kind == APPROVAL_HOST  ? x_strdup (r->text)
                                    : x_strdup (slash ? slash + 1 : r->text);
    for (size_t i = 0; i < granted[r->kind]->len; i++) {
        const char *entry = granted[r->kind]->items[i], *bare = strrchr (entry, '/');
        if (r->kind == APPROVAL_HOST ? strcasestr (entry, meant) != NULL
                                     : str_eq (bare ? bare + 1 : entry, meant))
            return true;
    }
    /* What is delegated to may run what this capsule does not. */
    return r->kind != APPROVAL_CAPSULE && p->spawn_allow.len;
}

static void
warn_approvals (const struct policy *p)
{
    for (size_t i = 0; i < p->approvals.len; i++)
        if (! asks_of_something (p, &p->approvals.items[i]))
            diag_warn (DIAG_RUNTIME, W_SEC_035,
                       "approvals.%s: %s asks about nothing: the capsule is granted no such thing",
                       approval_kind_name (p->approvals.items[i].kind), p->approvals.items[i].text);
}

void
policy_warn_stage (const struct policy *p)
{
    warn_approvals (p);
    for (size_t i = 0; i < p->grants_len; i++)
        warn_entry (&p->grants[i]);
    policy_warn_programs (p, DIAG_RUNTIME);
    struct str_list interpreters = policy_advisory_interpreters (p);
    for (size_t i = 0; i < interpreters.len; i++)
        diag_warn (DIAG_RUNTIME, W_SEC_017,
                   "capabilities.filesystem.read_only is only advisory against %s, which writes "
                   "files by itself",
                   interpreters.items[i]);
}

/* --- W-SEC-001, 002, 003, 005 --- */

/* What confines the commands of shell.allow, for each tier. */
static const struct tier_warning tier_warnings[] = {
    [TIER_NONE] = { W_SEC_001, "nothing on this system confines commands" },
    [TIER_SECCOMP] = { W_SEC_002, "this kernel has no usable Landlock: commands have a network of "
                                  "their own and fewer system calls, but files are not kept from "
                                  "them and shell.allow is only a check of names" },
    [TIER_LANDLOCK] = { W_SEC_005, "the kernel confines commands and native tools: files and "
                                   "programs (Landlock), system calls (seccomp), network (a "
                                   "namespace of their own)" },
    [TIER_SEALED] = { W_SEC_005, "the kernel confines commands and native tools: a root of their "
                                 "own (mount namespace), files and programs (Landlock), system "
                                 "calls (seccomp), network (a namespace of their own)" },
};

size_t
policy_tier_warnings (const struct policy *p, enum containment_tier tier,
                      struct tier_warning out[TIER_WARNINGS_MAX])
{
    size_t len = 0;
    bool has_bash = false;
    for (size_t i = 0; i < p->commands.allow.len; i++)
        has_bash |= str_eq (p->commands.allow.items[i], "bash");
    if (p->commands.allow.len)
        out[len++] = tier_warnings[tier];
    if (has_bash && p->network.allow.len && tier == TIER_NONE)
        out[len++] = (struct tier_warning){
            W_SEC_003, "bash opens connections of its own (/dev/tcp), and nothing on this system "
                       "keeps them within capabilities.network.allow"
        };
    return len;
}

/* --- W-SEC-018 --- */

/* True when some "format" below says murmur-destination or murmur-opaque. */
static bool
is_annotated (const struct yaml_node *n)
{
    if (! n)
        return false;
    const char *format = yaml_text (yaml_get (n, "format"));
    if (str_eq (format, "murmur-destination") || str_eq (format, "murmur-opaque"))
        return true;
    for (uint32_t i = 0; ! yaml_is_scalar (n) && i < n->len; i++)
        if (is_annotated (n->kind == YAML_LIST ? n->items[i] : n->pairs[i].value))
            return true;
    /* A schema may be packed as one JSON text. */
    return n->kind == YAML_STRING &&
           (strstr (n->text, "\"murmur-destination\"") || strstr (n->text, "\"murmur-opaque\""));
}

void
policy_warn_unannotated (const struct policy *p, const char *tool_name,
                         const struct yaml_node *input_schema)
{
    if (p->files.read_only_paths.len && ! is_annotated (input_schema))
        diag_warn (DIAG_RUNTIME, W_SEC_018,
                   "%s: its input schema says of no value whether it is a destination, so "
                   "capabilities.filesystem.read_only judges it by the names of its keys",
                   tool_name);
}
