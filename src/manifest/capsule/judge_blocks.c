/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging context, trace, observability, lifecycle, exports and control (spec/manifest.md 9, 10,
 * 12, 13).
 */
#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/text.h"
#include "base/words.h"
#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/exports_schema.h"
#include "manifest/capsule/judge_served.h"
#include "manifest/capsule/judges_internal.h"
#include "manifest/text/suggest.h"
#include "manifest/text/yaml_tree.h"

#include <string.h>

#define DEFAULT_EXPORT_BYTES 10485760
#define DEFAULT_HANDLE_SECS  3600

/* --- retain --- */

static bool
judge_retain_key (struct reading *rd, const char *path, const char *count_key,
                  const struct yaml_pair *pair, struct retain *out, struct mur_error **err)
{
    const char *key = yaml_is_scalar (pair->key) ? pair->key->text : "?";
    const char *at = path_of (rd, "%s.%s", path, key);
    if (strcmp (key, count_key) == 0) {
        if (! yaml_as_u64 (pair->value, &out->max_count) || out->max_count > UINT32_MAX ||
            ! out->max_count)
            return refuse_value (rd, err, at, "it must be a whole number of 1 to 4294967295");
        return true;
    }
    if (strcmp (key, "max_age") == 0) {
        const char *text = yaml_text (pair->value);
        if (! text || ! duration_parse (text, &out->max_age_secs) || ! out->max_age_secs)
            return refuse_value (
                rd, err, at,
                "'%s' is no duration above 0: write digits and s, m, h or d, such as 30d",
                text ? text : yaml_kind_name (pair->value));
        return true;
    }
    refuse_value (rd, err, at, "unknown key; here a misspelt one would keep everything");
    return mur_hint (err, "accepted keys: %s, max_age", count_key);
}

static bool
judge_retain (struct reading *rd, const struct yaml_node *n, const char *path,
              const char *count_key, struct retain **out, struct mur_error **err)
{
    if (! n)
        return true;
    if (n->kind != YAML_MAP || ! n->len) {
        refuse_value (rd, err, path, "it must be a map that says what is kept");
        return mur_hint (err, "accepted keys: %s, max_age; without the block everything is kept",
                         count_key);
    }
    *out = arena_new0 (rd->r.arena, struct retain);
    for (uint32_t i = 0; i < n->len; i++)
        if (! judge_retain_key (rd, path, count_key, &n->pairs[i], *out, err))
            return false;
    return true;
}

/* --- (14), (15) --- */

bool
judge_context (struct reading *rd, struct mur_error **err)
{
    struct context *c = rd->m->context;
    if (! c)
        return true;
    c->is_recorded = ! str_eq (c->written_record, "off");
    return schema_check (&rd->r, &context_schema, c, "context", err) &&
           judge_retain (rd, c->written_retain, "context.retain", "max_messages", &c->retain, err);
}

bool
judge_trace (struct reading *rd, struct mur_error **err)
{
    struct trace_block *t = rd->m->trace;
    if (! t)
        return true;
    t->capture = str_eq (t->written_capture, "none")      ? CAPTURE_NONE
                 : str_eq (t->written_capture, "content") ? CAPTURE_CONTENT
                 : str_eq (t->written_capture, "replay")  ? CAPTURE_REPLAY
                                                          : CAPTURE_META;
    return schema_check (&rd->r, &trace_schema, t, "trace", err) &&
           judge_retain (rd, t->written_retain, "trace.retain", "max_sessions", &t->retain, err);
}

void
settle_scorers (struct reading *rd)
{
    static const struct {
        const char *type;
        uint64_t max;
    } known[] = {
        { "exit_ok", 0 },       { "max_turns", 10 }, { "max_tokens", 100000 },
        { "tool_sequence", 0 }, { "llm_judge", 0 },
    };
    struct eval_block *eval = rd->m->observability ? rd->m->observability->eval : NULL;
    if (! eval || ! eval->scorers.len)
        return;
    size_t kept = 0;
    eval->skipped.items = arena_new_array (rd->r.arena, const char *, eval->scorers.len);
    for (size_t i = 0; i < eval->scorers.len; i++) {
        struct scorer s = eval->scorers.items[i];
        size_t k = 0;
        while (k < ARRAY_LEN (known) && strcmp (known[k].type, s.type) != 0)
            k++;
        if (k == ARRAY_LEN (known)) {
            eval->skipped.items[eval->skipped.len++] = s.type;
            continue;
        }
        if (! s.name)
            s.name = s.type;
        if (! s.max.is_set)
            s.max.value = known[k].max;
        eval->scorers.items[kept++] = s;
    }
    eval->scorers.len = kept;
}

/* --- (18) --- */

static bool
judge_keep_working (struct reading *rd, const struct keep_working *k, struct mur_error **err)
{
    if (! k)
        return true;
    if (text_is_blank (k->message))
        return refuse_value (rd, err, "lifecycle.keep_working.message", "a message is required");
    return k->limit.is_set ||
           refuse_value (rd, err, "lifecycle.keep_working.limit", "a limit is required");
}

static bool
judge_done_check (struct reading *rd, const struct done_check *d, struct mur_error **err)
{
    if (! d)
        return true;
    const char *path = "lifecycle.done_check.command";
    if (text_is_blank (d->command))
        return refuse_value (rd, err, path, "a command is required");
    _cleanup_strv_ struct strv words = { 0 };
    if (! words_split (d->command, &words))
        return refuse_value (rd, err, path, "%s", "a quote is not closed");
    const struct cap_shell *shell = rd->m->capabilities->shell;
    bool is_allowed = false;
    for (size_t i = 0; words.len && shell && i < shell->allow.len; i++)
        is_allowed = is_allowed || strcmp (shell->allow.items[i], words.items[0]) == 0;
    if (! is_allowed) {
        refuse_value (rd, err, path, "'%s' is not in capabilities.shell.allow",
                      words.len ? words.items[0] : "");
        return mur_hint (err, "only a program the capsule may run can judge its result");
    }
    return d->limit.is_set ||
           refuse_value (rd, err, "lifecycle.done_check.limit", "a limit is required");
}

bool
judge_lifecycle (struct reading *rd, struct mur_error **err)
{
    const struct lifecycle *l = rd->m->lifecycle;
    if (! schema_check (&rd->r, &lifecycle_schema, l, "lifecycle", err))
        return false;
    if (l->task_acceptance.value == ACCEPT_QUEUE && l->queue_depth.value == 0)
        return refuse_value (
            rd, err, "lifecycle.queue_depth",
            "0 leaves a queue without room: it must be at least 1 with task_acceptance: queue");
    return judge_keep_working (rd, l->keep_working, err) &&
           judge_done_check (rd, l->done_check, err);
}

/* --- approvals --- */

static bool
judge_approval_words (struct reading *rd, const struct str_list *list, const char *key,
                      struct mur_error **err)
{
    for (size_t i = 0; i < list->len; i++) {
        _cleanup_strv_ struct strv words = { 0 };
        const char *path = path_of (rd, "approvals.%s[%zu]", key, i);
        if (text_is_blank (list->items[i]))
            return refuse_value (rd, err, path, "a blank entry names nothing");
        if (! words_split (list->items[i], &words))
            return refuse_value (rd, err, path, "a quote is not closed");
    }
    return true;
}

/* A rule that is misspelt asks about nothing, so no key is passed over. */
static bool
judge_approval_keys (struct reading *rd, const struct approvals *a, struct mur_error **err)
{
    for (size_t i = 0; i < rd->r.unknown.len; i++) {
        const struct unknown_key *key = &rd->r.unknown.items[i];
        if (! str_eq (key->path, "approvals"))
            continue;
        refuse_value (rd, err, path_of (rd, "approvals.%s", key->key),
                      "unknown key; here a misspelt one would ask about nothing");
        return mur_hint (err, "accepted keys: tools, commands, hosts, paths, capsules, "
                              "timeout_secs, on_timeout");
    }
    return a->tools.len + a->commands.len + a->hosts.len + a->paths.len + a->capsules.len ||
           refuse_value (rd, err, "approvals", "no rule says what is asked about");
}

bool
judge_approvals (struct reading *rd, struct mur_error **err)
{
    const struct approvals *a = rd->m->approvals;
    if (! a)
        return true;
    if (! judge_approval_keys (rd, a, err))
        return false;
    if (! rd->m->inference) {
        refuse_value (rd, err, "approvals", "a script capsule asks nobody");
        return mur_hint (err, "approvals stand before the calls of a model: it needs inference:");
    }
    return schema_check (&rd->r, &approvals_schema, a, "approvals", err) &&
           judge_approval_words (rd, &a->tools, "tools", err) &&
           judge_approval_words (rd, &a->commands, "commands", err) &&
           judge_approval_words (rd, &a->hosts, "hosts", err) &&
           judge_approval_words (rd, &a->paths, "paths", err) &&
           judge_approval_words (rd, &a->capsules, "capsules", err);
}

/* --- (19) --- */

/* Unlike a scope an export is never normalised: any ".." is refused, so that the text says what is
 * shown. */
static bool
judge_export_root (struct reading *rd, const char *root, const char *path, struct mur_error **err)
{
    if (! root)
        return refuse_value (rd, err, path, "a folder below the work folder is required");
    if (root[0] == '/')
        return refuse_value (rd, err, path, "'%s' is absolute: it must lie below the work folder",
                             root);
    for (const char *p = root; *p;) {
        size_t len = strcspn (p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.')
            return refuse_value (rd, err, path, "'%s' has a '..' component", root);
        p += len;
        p += *p == '/';
    }
    return true;
}

static uint64_t
size_or (const char *text, uint64_t fallback)
{
    uint64_t bytes;
    return text && byte_size_parse (text, &bytes) ? bytes : fallback;
}

static bool
judge_exported_files (struct reading *rd, struct exported_files *f, struct mur_error **err)
{
    if (! f)
        return true;
    if (! judge_export_root (rd, f->root, "exports.files.root", err))
        return false;
    if (! f->mode || strcmp (f->mode, "read-only") != 0)
        return refuse_value (rd, err, "exports.files.mode", "'%s' is refused: it must be read-only",
                             f->mode ? f->mode : "");
    f->max_bytes = size_or (f->written_max_bytes, DEFAULT_EXPORT_BYTES);
    return true;
}

static bool
judge_exported_peer_files (struct reading *rd, struct exported_peer_files *f,
                           struct mur_error **err)
{
    if (! f)
        return true;
    if (! judge_export_root (rd, f->root, "exports.peer_files.root", err))
        return false;
    f->max_bytes = size_or (f->written_max_bytes, DEFAULT_EXPORT_BYTES);
    f->max_ttl_is_set = f->written_max_ttl != NULL;
    f->max_ttl_secs = DEFAULT_HANDLE_SECS;
    if (f->written_max_ttl)
        duration_parse (f->written_max_ttl, &f->max_ttl_secs);
    return true;
}

bool
judge_exports (struct reading *rd, struct mur_error **err)
{
    struct exports *e = rd->m->exports;
    if (! e)
        return true;
    if (! schema_check (&rd->r, &exports_schema, e, "exports", err) ||
        ! judge_exported_files (rd, e->files, err) ||
        ! judge_exported_peer_files (rd, e->peer_files, err) || ! judge_exported_mcp (rd, e, err))
        return false;
    if (e->peer_tasks && ! e->peer_tasks->accept.is_set)
        return refuse_value (rd, err, "exports.peer_tasks.accept",
                             "it must be said: true or false");
    return true;
}

/* --- (20) --- */

static bool
judge_settings (struct reading *rd, const struct str_list *list, const char *path,
                const char *const *accepted, struct mur_error **err)
{
    for (size_t i = 0; i < list->len; i++) {
        size_t k = 0;
        while (accepted[k] && strcmp (accepted[k], list->items[i]) != 0)
            k++;
        if (accepted[k])
            continue;
        refuse_value (rd, err, path_of (rd, "%s[%zu]", path, i),
                      "'%s' is refused: it must be one of: %s", list->items[i],
                      schema_words (rd->r.arena, accepted));
        return suggestion_among (list->items[i], accepted, err);
    }
    size_t twice = find_repeat (list->items, list->len);
    if (twice < list->len)
        return refuse_value (rd, err, path_of (rd, "%s[%zu]", path, twice), "'%s' stands twice",
                             list->items[twice]);
    return true;
}

static bool
judge_settings_apply (struct reading *rd, const struct control *c, struct mur_error **err)
{
    const struct inference *inf = rd->m->inference;
    bool is_http = inf->transport == TRANSPORT_HTTP;
    if (str_list_has (&c->settings, "inference.max_tokens") && ! is_http)
        return refuse_value (rd, err, "control.settings",
                             "inference.max_tokens can be changed only under transport: http");
    const struct {
        const char *path;
        const struct str_list *list;
    } lists[] = { { "control.settings", &c->settings },
                  { "control.agent_settings", &c->agent_settings } };
    for (size_t i = 0; i < ARRAY_LEN (lists); i++)
        if (str_list_has (lists[i].list, "inference.driver") &&
            (! is_http || ! inf->alternates.len))
            return refuse_value (rd, err, lists[i].path,
                                 "inference.driver can be changed only with inference.alternates "
                                 "under transport: http");
    return true;
}

static bool
judge_secrets (struct reading *rd, const struct str_list *secrets, struct mur_error **err)
{
    const struct capsule_manifest *m = rd->m;
    const char **references = arena_new_array (m->arena, const char *, m->artifacts.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < m->artifacts.len; i++)
        if (m->artifacts.items[i].gateway && m->artifacts.items[i].gateway->key_reference)
            references[len++] = m->artifacts.items[i].gateway->key_reference;
    struct text_set referenced = text_set_of (rd, references, len);
    const struct artifact_entry *driver =
        m->inference->transport == TRANSPORT_HTTP ? m->inference->driver_entry : NULL;
    const char *drivers = driver && driver->gateway ? driver->gateway->key_reference : NULL;
    for (size_t i = 0; i < secrets->len; i++) {
        const char *name = secrets->items[i], *path = path_of (rd, "control.secrets[%zu]", i);
        if (! upper_snake_is_valid (name))
            return refuse_value (rd, err, path, "'%s' is no name of A-Z, 0-9 and '_'", name);
        if (! text_set_has (&referenced, name))
            return refuse_value (rd, err, path, "no gateway.api_key is ${%s}", name);
        if (str_eq (drivers, name))
            return refuse_value (rd, err, path, "the configured driver needs %s from the start",
                                 name);
    }
    size_t twice = find_repeat (secrets->items, secrets->len);
    if (twice < secrets->len)
        return refuse_value (rd, err, path_of (rd, "control.secrets[%zu]", twice),
                             "'%s' stands twice", secrets->items[twice]);
    return true;
}

bool
judge_control (struct reading *rd, struct mur_error **err)
{
    static const char *const settings[] = { "inference.max_tokens", "inference.driver", NULL };
    static const char *const agent_settings[] = { "inference.driver", NULL };
    struct control *c = rd->m->control;
    if (! c)
        return true;
    if (! c->settings.len && ! c->agent_settings.len && ! c->secrets.len) {
        rd->m->control = NULL;
        return true;
    }
    if (! rd->m->inference)
        return refuse_value (rd, err, "control", "there is nothing to control without inference");
    return judge_settings (rd, &c->settings, "control.settings", settings, err) &&
           judge_settings (rd, &c->agent_settings, "control.agent_settings", agent_settings, err) &&
           judge_settings_apply (rd, c, err) && judge_secrets (rd, &c->secrets, err);
}
