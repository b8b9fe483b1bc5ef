/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include "base/alloc.h"
#include "policy/ceiling.h"

#include <string.h>

#define HOOK_DEADLINE_SECS 30

/* The value of a block's member, or an empty one when the block was not declared. */
#define OF(block, member) ((block) ? (block)->member : (__typeof__ ((block)->member)){ 0 })

static void
lower_capabilities (struct policy *p, const struct capabilities *c)
{
    p->network.allow = OF (c->network, allow);
    p->network.unix_sockets_allowed = OF (c->network, unix_sockets).value;
    p->network.host_sockets = OF (c->network, host_sockets);
    p->network.peer_fetch_allow = OF (c->peer_fetch, allow);
    p->files.scope = c->filesystem ? c->filesystem->scope : NULL;
    p->files.exec_allowed = OF (c->filesystem, workdir_exec).value != WORKDIR_EXEC_NONE;
    p->files.exec_is_walled = OF (c->filesystem, workdir_exec).value == WORKDIR_EXEC_WALLED;
    p->files.read_only_paths = OF (c->filesystem, read_only);
    p->commands.shell = c->shell;
    p->commands.allow = OF (c->shell, allow);
    p->commands.strip_env = OF (c->shell, strip_env);
    p->commands.baseline_env = OF (c->shell, baseline_env);
    p->spawn_allow = OF (c->spawn, allow);
    p->files.snapshot = OF (c->spawn, workdir_snapshot);
    p->env_allow = OF (c->env, allow);
    p->plan_submit = OF (c->plan, submit).value;
    p->install.is_declared = c->install != NULL;
    p->install.skill = OF (c->install, skill);
    p->install.tool = OF (c->install, tool);
    for (size_t i = 0; c->install && i < c->install->from.len; i++)
        if (strcmp (c->install->from.items[i], "sources") == 0)
            p->install.from_sources = true;
    p->state_declared = c->state != NULL;
    p->conversation_declared = c->conversation != NULL;
    p->limits = c->limits ? *c->limits : limits_default ();
    p->resources = c->resources ? *c->resources : resources_default ();
    p->declared_deadline_seconds =
        c->limits && c->limits->deadline_seconds.is_set ? c->limits->deadline_seconds.value : 0;
}

/* --- what one artifact may reach --- */

static struct str_list
empty_list (struct arena *a, size_t room)
{
    return (struct str_list){ .items = arena_new_array (a, const char *, room + 1),
                              .is_set = true };
}

/* Splits an entry's own list at the ceiling. What does not parse is covered by nothing. */
static void
clamp_network (struct policy *p, const struct ceiling *ceiling, struct artifact_grant *g,
               const struct str_list *own)
{
    g->network = empty_list (p->arena, own->len);
    g->dropped = empty_list (p->arena, own->len);
    for (size_t i = 0; i < own->len; i++) {
        _cleanup_allow_list_ struct allow_list one = { 0 };
        bool is_covered =
            allow_list_add (&one, own->items[i], NULL) && ceiling_covers (ceiling, &one.rules[0]);
        struct str_list *to = is_covered ? &g->network : &g->dropped;
        to->items[to->len++] = own->items[i];
    }
}

/* What is granted to a hook or a server of tools is its own: nothing unless it is written, and
 * never a part of what the capsule has. */
static bool
is_apart_from_ceiling (const struct artifact_entry *e)
{
    return e->role == ROLE_HOOK || e->role == ROLE_MCP;
}

static void
lower_network (struct policy *p, const struct ceiling *ceiling, struct artifact_grant *g,
               const struct capabilities *c)
{
    bool is_apart = is_apart_from_ceiling (g->entry);
    const struct cap_network *own = c ? c->network : NULL;
    g->has_own_network = is_apart || own;
    if (is_apart)
        g->network = own ? own->allow : (struct str_list){ 0 };
    else if (own)
        clamp_network (p, ceiling, g, &own->allow);
}

static void
lower_filesystem (struct policy *p, struct artifact_grant *g, const struct capabilities *c)
{
    bool is_hook = g->entry->role == ROLE_HOOK;
    const char *why;
    g->scope = c && c->filesystem ? c->filesystem->scope : NULL;
    g->opens_records_hooks = is_hook && c && c->filesystem && c->filesystem->records.value;
    g->opens_work_dir = ! is_apart_from_ceiling (g->entry) || g->scope;
    if (g->scope) {
        _cleanup_free_ char *lowered = subpath_lower (g->scope, &why);
        g->scope_dir = lowered ? arena_strdup (p->arena, lowered) : NULL;
    } else if (g->opens_work_dir) {
        g->scope_dir = arena_strdup (p->arena, "");
    }
}

static void
lower_grant (struct policy *p, const struct ceiling *ceiling, struct artifact_grant *g,
             const struct artifact_entry *e)
{
    const struct capabilities *c = e->capabilities;
    const struct cap_limits *own = c ? c->limits : NULL;
    *g = (struct artifact_grant){ .entry = e };
    if (e->role == ROLE_SKILL)
        return;
    lower_network (p, ceiling, g, c);
    lower_filesystem (p, g, c);
    if (c && c->state)
        g->state_store = c->state->store ? c->state->store : p->manifest->name;
    g->may_read_task_io = c && c->task_io && c->task_io->read.value;
    g->may_read_conversation = c && c->conversation && c->conversation->read.value;
    g->deadline_seconds = p->limits.deadline_seconds.value;
    if (e->role == ROLE_HOOK)
        g->deadline_seconds = own && own->deadline_seconds.is_set ? own->deadline_seconds.value
                              : p->declared_deadline_seconds      ? p->declared_deadline_seconds
                                                                  : HOOK_DEADLINE_SECS;
    if (e->role == ROLE_MCP && own && own->deadline_seconds.is_set)
        g->deadline_seconds = own->deadline_seconds.value;
}

/* --- flags --- */

static bool
apply_word (struct opt_u64 *out, const char *flag, const char *value, const char *const *words,
            struct mur_error **err)
{
    if (! value)
        return true;
    _cleanup_buf_ struct buf list = { 0 };
    for (uint64_t i = 0; words[i]; i++) {
        if (strcmp (words[i], value) == 0) {
            *out = (struct opt_u64){ i, true };
            return true;
        }
        buf_printf (&list, "%s%s", i ? ", " : "", words[i]);
    }
    return mur_fail (err, E_IO_003, "%s must be one of: %s; got '%s'", flag, list.data, value);
}

/* A value of --lifecycle-task-acceptance / --lifecycle-after-task. E-IO-003. Applied by
 * policy_lower. */
static bool
policy_apply_lifecycle_flags (struct lifecycle *l, const char *task_acceptance,
                              const char *after_task, const char *conversation,
                              struct mur_error **err)
{
    static const char *const acceptances[] = { "none", "single", "queue", NULL };
    static const char *const endings[] = { "exit", "sleep", NULL };
    static const char *const conversations[] = { "stateless", "threaded", NULL };
    return apply_word (&l->task_acceptance, "--lifecycle-task-acceptance", task_acceptance,
                       acceptances, err) &&
           apply_word (&l->after_task, "--lifecycle-after-task", after_task, endings, err) &&
           apply_word (&l->conversation, "--lifecycle-conversation", conversation, conversations,
                       err);
}

/* Its own class raises the floor of the session, whose walls it shares; a floor of the capsule
 * holds it, too, unless it is said to be outside. */
static void
lower_harness (struct policy *p, const struct inference *inference)
{
    if (! inference || inference->transport != TRANSPORT_PROCESS)
        return;
    const char *word = inference->written_containment;
    enum containment_class class = str_eq (word, "sealed")   ? CONTAINMENT_SEALED
                                   : str_eq (word, "scoped") ? CONTAINMENT_SCOPED
                                                             : CONTAINMENT_ADVISORY;
    if (class > p->containment_floor)
        p->containment_floor = class;
}

struct policy *
policy_lower (const struct capsule_manifest *m, const struct policy_request *request,
              struct mur_error **err)
{
    struct arena *arena = arena_new ();
    _cleanup_ (policy_freep) struct policy *p = arena_new0 (arena, struct policy);
    p->arena = arena;
    p->manifest = m;
    p->request = request;
    lower_capabilities (p, m->capabilities);
    p->containment_floor = containment_floor (request->config_floor, m->capabilities->containment,
                                              request->flag_floor);
    lower_harness (p, m->inference);
    p->lifecycle = *m->lifecycle;
    if (! approval_rules_lower (arena, m->approvals, request->approvals, &p->approvals, err))
        return NULL;
    if (! policy_apply_lifecycle_flags (&p->lifecycle, request->flag_task_acceptance,
                                        request->flag_after_task, request->flag_conversation, err))
        return NULL;
    /* A store that is written down is judged even where nothing is recorded. */
    bool is_named = m->context && m->context->record_store;
    bool is_recorded = (m->inference || is_named) && (! m->context || m->context->is_recorded);
    if (is_recorded)
        p->record_store =
            m->context && m->context->record_store ? m->context->record_store : m->name;
    p->grants_len = m->artifacts.len;
    p->grants = arena_new_array (arena, struct artifact_grant, m->artifacts.len + 1);
    const struct ceiling ceiling = ceiling_of (arena, &p->network.allow);
    for (size_t i = 0; i < m->artifacts.len; i++)
        lower_grant (p, &ceiling, &p->grants[i], &m->artifacts.items[i]);
    return steal_ptr (&p);
}

void
policy_free (struct policy *p)
{
    if (p)
        arena_free (p->arena); /* p itself lives there */
}

/* --- native processes --- */

bool
policy_confines_harness (const struct policy *p)
{
    const struct inference *inference = p->manifest->inference;
    if (! inference || inference->transport != TRANSPORT_PROCESS)
        return false;
    const char *word = inference->written_containment;
    return word ? ! str_eq (word, "none") : p->containment_floor > CONTAINMENT_ADVISORY;
}

/* The first declaration that lets the launch start one, or NULL. */
static const char *
native_route (const struct policy *p, bool has_native_artifact)
{
    const struct {
        const char *name;
        bool is_open;
    } routes[] = {
        { "capabilities.shell.allow", p->commands.allow.len > 0 },
        { "capabilities.spawn.allow", p->spawn_allow.len > 0 },
        { "capabilities.install.tool", p->install.tool.len > 0 },
        { "a native tool under artifacts", has_native_artifact },
        { "inference.containment", policy_confines_harness (p) },
    };
    for (size_t i = 0; i < ARRAY_LEN (routes); i++)
        if (routes[i].is_open)
            return routes[i].name;
    return NULL;
}

bool
policy_may_run_native (const struct policy *p, bool has_native_artifact)
{
    return native_route (p, has_native_artifact) != NULL;
}
