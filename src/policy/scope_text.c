/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scope_text.h"

#include "base/alloc.h"
#include "manifest/capsule/capsule_entry.h"
#include "policy/scope_report_internal.h"
#include "policy/server_report.h"
#include "policy/warn.h"

#include <inttypes.h>
#include <string.h>

static void
put_items (struct buf *out, const char *label, const char *const *items, size_t len)
{
    if (! len) {
        buf_printf (out, "  %s: <none>\n", label);
        return;
    }
    buf_printf (out, "  %s:\n", label);
    for (size_t i = 0; i < len; i++)
        buf_printf (out, "    - %s\n", items[i]);
}

static void
put_list (struct buf *out, const char *label, const struct str_list *list)
{
    put_items (out, label, list->items, list->len);
}

/* Prints and frees. */
static void
put_lines (struct buf *out, const char *label, struct strv *lines)
{
    put_items (out, label, (const char *const *)lines->items, lines->len);
    strv_free (lines);
}

static void
put_containment (struct buf *out, const struct policy *p, const struct containment *c)
{
    buf_puts (out, "Containment\n");
    buf_printf (out, "  declared:  %s\n", containment_name (c->declared));
    buf_printf (out, "  achieved:  %s\n", containment_name (c->achieved));
    buf_printf (out, "  host can back: %s\n", containment_name (c->host));
    buf_printf (out, "  floor met: %s\n", c->floor_met ? "yes" : "no");
    if (! c->floor_met)
        buf_printf (out, "  reason:    %s\n", c->shortfall_reason);
    buf_printf (out, "  mechanism: %s\n", containment_tier_name (c->applied));
    buf_printf (out, "  covers:    shell commands, plan shell steps, native tools%s\n",
                policy_confines_harness (p) ? ", the harness" : "");
    buf_printf (out, "  userns grant: %s\n", c->facts.userns_grant ? c->facts.userns_grant : "n/a");
    if (c->facts.landlock_abi)
        buf_printf (out, "  landlock ABI: %d\n\n", c->facts.landlock_abi);
    else
        buf_puts (out, "  landlock ABI: n/a\n\n");
}

static void
put_directory (struct buf *out, const char *heading, const struct report_dir *d)
{
    buf_printf (out, "%s\n  path:      %s\n", heading, d->path);
    if (d->enforced_by)
        buf_printf (out, "  commands:  read only (%s)\n\n", d->enforced_by);
    else
        buf_printf (out, "  commands:  can change it — %s\n\n", d->not_protected_because);
}

static void
put_temp (struct buf *out, const struct report_facts *f)
{
    buf_printf (out, "Temporary folder\n  path:      %s\n", f->temp_path);
    buf_printf (out, "  TMPDIR:    %s\n", f->temp_mapped_by ? "/tmp" : f->temp_path);
    if (f->temp_mapped_by)
        buf_printf (out, "  /tmp:      mapped (%s)\n\n", f->temp_mapped_by);
    else
        buf_printf (out, "  /tmp:      not mapped — %s\n\n", f->temp_not_mapped_because);
}

void
scope_text_directories (const struct report_facts *facts, struct buf *out)
{
    put_directory (out, "Runtime directory", &facts->runtime_dir);
    put_directory (out, "Records directory", &facts->records_dir);
    put_temp (out, facts);
}

static void
put_not_protected (struct buf *out, const struct policy *p, const struct report_facts *f)
{
    _cleanup_strv_ struct strv statements = { 0 };
    report_not_protected (f, &statements);
    if (p->files.exec_is_walled)
        strv_push (
            &statements,
            "files of the work folder run (filesystem.workdir_exec: walled): shell.allow does "
            "not bound which code runs, only the walls do");
    if (! statements.len)
        return;
    buf_puts (out, "Not protected here\n");
    for (size_t i = 0; i < statements.len; i++)
        buf_printf (out, "  - %s\n", statements.items[i]);
    buf_putc (out, '\n');
}

/* What one artifact finds at ".", in words. */
static char *
preopen_words (const struct policy *p, const struct report_facts *f, size_t i)
{
    const struct artifact_grant *g = &p->grants[i];
    if (g->opens_records_hooks)
        return x_strdup (
            "the session's records folder for hooks — capabilities.filesystem.records: true");
    if (g->scope)
        return x_asprintf (
            "one subtree of the accessible workdir — capabilities.filesystem.scope: %s", g->scope);
    if (! g->opens_work_dir)
        return x_strdup ("nothing preopened — no capabilities.filesystem.scope declared");
    const char *reach = report_runtime_reach (p, f, i);
    const char *rest =
        ! reach ? ""
        : strcmp (reach, "murmur-runtime") == 0
            ? "; the runtime directory, read only, as murmur-runtime"
        : strcmp (reach, "environment") == 0
            ? "; the runtime directory by MURMUR_RUNTIME_DIR"
            : "; whether it sees the runtime directory is known once it is installed and locked";
    return x_asprintf ("the whole accessible workdir — no capabilities.filesystem.scope declared%s",
                       rest);
}

void
scope_text_preopens (const struct policy *p, const struct report_facts *f, struct buf *out)
{
    struct strv lines = { 0 };
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_entry *e = p->grants[i].entry;
        if (e->role == ROLE_SKILL)
            continue;
        _cleanup_free_ char *words = preopen_words (p, f, i);
        strv_printf (&lines, "%s (%s): %s", e->name, artifact_role_name (e->role), words);
    }
    put_lines (out, "preopens", &lines);
}

void
scope_text_read_only (const struct policy *p, struct buf *out)
{
    put_list (out, "read_only", &p->files.read_only_paths);
    if (! p->files.read_only_paths.len)
        return;
    const struct str_list interpreters = policy_advisory_interpreters (p);
    buf_puts (out, "  read_only enforcement: ");
    for (size_t i = 0; i < interpreters.len; i++)
        buf_printf (out, "%s%s", i ? ", " : "advisory against ", interpreters.items[i]);
    buf_puts (out, interpreters.len ? "\n" : "every tool and command\n");
}

void
scope_text_install (const struct policy *p, struct buf *out)
{
    put_list (out, "install skill", &p->install.skill);
    put_list (out, "install tool", &p->install.tool);
    if (p->install.is_declared)
        buf_printf (out, "  install from: stores%s\n", p->install.from_sources ? ", sources" : "");
}

/* What is asked first, a line a rule. */
static void
put_approvals (struct buf *out, const struct policy *p)
{
    const struct approval_rules *a = &p->approvals;
    if (! a->len)
        return;
    struct strv lines = { 0 };
    for (size_t i = 0; i < a->len; i++)
        strv_printf (&lines, "%s: %s%s", approval_kind_name (a->items[i].kind), a->items[i].text,
                     a->items[i].is_inherited ? " (of the session that delegated)" : "");
    strv_printf (&lines, "a question waits %llu s, then the answer is %s",
                 (unsigned long long)a->timeout_secs, a->allows_on_timeout ? "once" : "no");
    put_lines (out, "asked first", &lines);
}

static void
put_artifact_lists (struct buf *out, const struct policy *p)
{
    struct strv stores = { 0 }, configured = { 0 }, servers = { 0 };
    for (size_t i = 0; i < p->grants_len; i++) {
        const struct artifact_grant *g = &p->grants[i];
        if (g->entry->config)
            strv_push (&configured, g->entry->name);
        if (! g->state_store)
            continue;
        _cleanup_free_ char *path = report_state_path (p, g->state_store);
        strv_printf (&stores, "%s: %s -> %s", g->entry->name, g->state_store, path);
    }
    put_lines (out, "state stores", &stores);
    put_lines (out, "artifact config", &configured);
    report_servers (p, &servers);
    if (servers.len)
        put_lines (out, "servers of tools", &servers);
}

static void
put_grants (struct buf *out, const struct policy *p, const struct report_facts *f)
{
    struct strv interpreters = { 0 }, staged = { 0 };
    report_interpreters (p, &interpreters);
    report_staged (p, &staged);
    buf_puts (out, "Effective grants\n");
    buf_printf (out, "  filesystem scope: %s\n", p->files.scope ? p->files.scope : "<none>");
    buf_printf (out, "  workdir exec:     %s\n",
                p->files.exec_is_walled ? "walled"
                : p->files.exec_allowed ? "true"
                                        : "false");
    scope_text_read_only (p, out);
    scope_text_preopens (p, f, out);
    put_list (out, "network allow", &p->network.allow);
    buf_printf (out, "  unix sockets:     %s\n",
                p->network.unix_sockets_allowed ? "true" : "false");
    if (p->network.host_sockets.len)
        put_list (out, "host sockets", &p->network.host_sockets);
    put_list (out, "shell allow", &p->commands.allow);
    put_list (out, "spawn allow", &p->spawn_allow);
    put_list (out, "env allow", &p->env_allow);
    buf_printf (out, "  plan submit:      %s\n", p->plan_submit ? "true" : "false");
    scope_text_install (p, out);
    put_lines (out, "interpreter runtime", &interpreters);
    put_list (out, "derived interpreter runtime", &p->derived.interpreter_runtime);
    put_list (out, "program parts", &p->derived.program_parts);
    put_list (out, "trust store", &p->derived.trust_store);
    put_lines (out, "staged runtime", &staged);
    put_artifact_lists (out, p);
    put_approvals (out, p);
    buf_putc (out, '\n');
}

static void
put_resource_plane (struct buf *out, const struct policy *p, const struct report_facts *f)
{
    const struct exported_files *files = p->manifest->exports ? p->manifest->exports->files : NULL;
    buf_puts (out, "Resource plane\n");
    if (files) {
        buf_printf (out, "  exports.files root: %s\n  mode:               %s\n", files->root,
                    files->mode);
        buf_printf (out, "  max bytes:          %" PRIu64 " (per file)\n", files->max_bytes);
    } else {
        buf_puts (out, "  exports.files: <none>\n");
    }
    buf_printf (out, "  io.max:        %s (%" PRIu64 " bytes/s declared)\n", f->io_max_status,
                p->resources.cgroup_io_bytes_per_sec.value);
    if (f->io_max_reason)
        buf_printf (out, "    %s\n", f->io_max_reason);
    buf_putc (out, '\n');
}

static void
put_peer_handoff (struct buf *out, const struct policy *p)
{
    const struct exports *e = p->manifest->exports;
    buf_puts (out, "Peer handoff\n");
    if (e && e->peer_files) {
        buf_printf (out, "  exports.peer_files root: %s\n", e->peer_files->root);
        buf_printf (out, "  max handle ttl:          %" PRIu64 "s\n", e->peer_files->max_ttl_secs);
        buf_printf (out, "  max bytes:               %" PRIu64 " (per file)\n",
                    e->peer_files->max_bytes);
    } else {
        buf_puts (out, "  exports.peer_files: <none>\n");
    }
    bool accepts = e && e->peer_tasks && e->peer_tasks->accept.value;
    buf_printf (out, "  exports.peer_tasks: %s\n", accepts ? "accept" : "refuse");
    put_list (out, "peer_fetch allow", &p->network.peer_fetch_allow);
    buf_putc (out, '\n');
}

static void
put_runtime_writes (struct buf *out)
{
    buf_puts (out, "Runtime writes\n  paths are relative to the work folder\n  runtime writes:\n");
    for (const struct report_write *w = report_writes; w->path; w++)
        buf_printf (out, "    - %s (%s, %s)\n", w->path, w->kind, w->condition);
}

void
scope_report_text (const struct policy *p, const struct report_facts *facts, struct buf *out)
{
    put_containment (out, p, facts->containment);
    scope_text_directories (facts, out);
    put_not_protected (out, p, facts);
    put_grants (out, p, facts);
    put_resource_plane (out, p, facts);
    put_peer_handoff (out, p);
    put_runtime_writes (out);
}
