/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/grants_report.h"

#include "base/alloc.h"
#include "sandbox/host/host.h"
#include "sandbox/programs/hopeless.h"
#include "sandbox/programs/trust_store.h"
#include "sandbox/run/confinement.h"
#include "session/commands/confine.h"
#include "session/commands/confine_check.h"
#include "session/grants.h"
#include "session/stage/staged.h"
#include "session/state/session.h"

#include <string.h>
#include <sys/stat.h>

static const char *const io_words[] = {
    [CGROUP_IO_NOT_REQUIRED] = "not-required",
    [CGROUP_IO_ENFORCED] = "enforced",
    [CGROUP_IO_UNAVAILABLE] = "unavailable",
};

static void
set_io (struct policy *p, const struct cgroup_scope *scope, const char *shortfall,
        struct report_facts *facts)
{
    const char *reason = shortfall;
    facts->io_max_status =
        io_words[scope ? cgroup_scope_io_status (scope, &reason) : CGROUP_IO_UNAVAILABLE];
    facts->io_max_reason = reason ? arena_printf (p->arena, "%s", reason) : NULL;
}

static void
add_once (struct str_list *out, const char *text)
{
    if (! str_list_has (out, text))
        out->items[out->len++] = text;
}

/* One line for each folder or file a program's answer granted, after the program's real path. */
static void
set_derived (struct policy *p, const struct exec_allowlist *list)
{
    struct str_list *out = &p->derived.interpreter_runtime;
    size_t count = 0;
    for (size_t i = 0; i < list->name_count; i++)
        count += list->names[i].derived.len;
    *out = (struct str_list){ .items = arena_new_array (p->arena, const char *, count + 1) };
    for (size_t i = 0; i < list->name_count; i++) {
        const struct exec_name *n = &list->names[i];
        for (size_t j = 0; j < n->derived.len; j++) {
            const char *path = n->derived.items[j];
            struct stat st;
            bool is_listed = stat (path, &st) == 0 && S_ISDIR (st.st_mode);
            add_once (out, arena_printf (p->arena, "%s: %s%s", n->path, path,
                                         is_listed ? " (list_dir)" : ""));
        }
    }
}

/* What recipes granted, each line once; then what no grant lets work. */
static void
set_parts (struct policy *p, const struct exec_allowlist *list)
{
    size_t count = p->commands.allow.len;
    for (size_t i = 0; i < list->name_count; i++)
        count += list->names[i].parts.len;
    p->derived.program_parts =
        (struct str_list){ .items = arena_new_array (p->arena, const char *, count + 1) };
    for (size_t i = 0; i < list->name_count; i++)
        for (size_t j = 0; j < list->names[i].parts.len; j++)
            p->derived.program_parts.items[p->derived.program_parts.len++] =
                arena_printf (p->arena, "%s", list->names[i].parts.items[j]);
    for (size_t i = 0; i < p->commands.allow.len && ! p->network.host_sockets.len; i++) {
        const char *name = p->commands.allow.items[i], *why = hopeless_why (name);
        if (why)
            p->derived.program_parts.items[p->derived.program_parts.len++] =
                arena_printf (p->arena, "%s: cannot do its work inside: %s", name, why);
    }
}

static void
set_trust_store (struct policy *p, const struct strv *paths)
{
    p->derived.trust_store =
        (struct str_list){ .items = arena_new_array (p->arena, const char *, paths->len + 1),
                           .len = paths->len };
    for (size_t i = 0; i < paths->len; i++)
        p->derived.trust_store.items[i] = arena_printf (p->arena, "%s", paths->items[i]);
}

void
grants_look (struct policy *p, const char *work_root, bool may_run_native,
             struct report_facts *facts)
{
    const char *records = arena_printf (p->arena, "%s/records", p->request->home_dir);
    const char *writable[] = { work_root, records, NULL };
    const char **names = arena_new_array (p->arena, const char *, p->commands.allow.len + 1);
    for (size_t i = 0; i < p->commands.allow.len; i++)
        names[i] = p->commands.allow.items[i];
    struct exec_allowlist list;
    exec_allowlist_resolve (&list, names, getenv ("PATH"), writable, confine_staged_names (p));
    set_derived (p, &list);
    set_parts (p, &list);
    exec_allowlist_free (&list);
    _cleanup_strv_ struct strv store = { 0 };
    if (p->commands.allow.len && p->network.allow.len)
        trust_store_paths (writable, &store);
    set_trust_store (p, &store);
    if (! may_run_native)
        return;
    struct cgroup_limits limits;
    confine_cgroup_limits (p, work_root, &limits);
    _cleanup_error_ struct mur_error *why = NULL;
    _cleanup_ (cgroup_scope_freep) struct cgroup_scope *scope =
        cgroup_scope_new ("explain-scope", &limits, &why);
    set_io (p, scope, why ? why->message : NULL, facts);
}

static char *
host_facts_json (const struct exec_allowlist *list)
{
    _cleanup_json_ json_t *facts = json_array ();
    for (size_t i = 0; list && i < list->name_count; i++)
        if (list->names[i].is_interpreter)
            json_array_append_new (facts, json_pack ("{s:s,s:s,s:s}", "binary", list->names[i].path,
                                                     "source", "derived", "reason", "absent"));
    return json_text (facts, JSON_TEXT_ORDERED);
}

void
grants_record (struct session *s)
{
    bool *is_native = arena_alloc (s->arena, s->kit.artifact_count + 1);
    bool *is_resolved = arena_alloc (s->arena, s->kit.artifact_count + 1);
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        is_native[i] = s->kit.artifacts[i].resolved && s->kit.artifacts[i].resolved->is_native;
        is_resolved[i] = true;
    }
    struct report_facts facts = { 0 };
    report_facts_fill (s->policy, host_decide (s->asked->decision), &facts);
    facts.artifact_is_native = is_native;
    facts.artifact_is_resolved = is_resolved;
    const struct exec_allowlist *list = NULL;
    struct confinement *c = confine_confinement (s);
    if (c) {
        list = confinement_allowlist (c);
        set_derived (s->policy, list);
        set_parts (s->policy, list);
        set_trust_store (s->policy, confinement_trust_store (c));
        set_io (s->policy, confinement_scope (c), confinement_cgroup_shortfall (c), &facts);
    }
    _cleanup_json_ json_t *report = scope_report_json (s->policy, &facts);
    free (s->rooms.staged->effective_grants);
    free (s->rooms.staged->host_facts);
    s->rooms.staged->effective_grants = json_text (report, JSON_TEXT_ORDERED);
    s->rooms.staged->host_facts = host_facts_json (list);
}
