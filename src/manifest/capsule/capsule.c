/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/capsule.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/text.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/capsule_mask.h"
#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/judges_internal.h"

#include <string.h>

/* --- the order of refusals --- */

static bool
refuse_removed_keys (struct reading *rd, struct mur_error **err)
{
    if (yaml_get (rd->r.root, "registry")) {
        refuse_value (rd, err, "registry", "this key does not belong into a manifest");
        return mur_hint (err,
                         "remove it: artifacts come from the project store, the global store, then "
                         "registry.sources of the operator's configuration");
    }
    if (rd->m->mur_version) {
        refuse_value (rd, err, "mur_version", "this key is not read at the top level");
        return mur_hint (err, "use deploy.mur_version");
    }
    return true;
}

static bool
require_identity (struct reading *rd, struct mur_error **err)
{
    const struct {
        const char *key, *value;
    } required[] = { { "name", rd->m->name }, { "version", rd->m->version } };
    for (size_t i = 0; i < ARRAY_LEN (required); i++)
        if (text_is_blank (required[i].value)) {
            schema_fail (&rd->r, err, E_MAN_001, required[i].key,
                         "the required field '%s' is missing or blank", required[i].key);
            return mur_hint (err, "add a line such as %s: %s", required[i].key,
                             i ? "0.1.0" : "my-capsule");
        }
    return true;
}

static bool
refuse_misplaced (struct reading *rd, struct mur_error **err)
{
    const struct capabilities *c = rd->m->capabilities;
    if (c->task_io) {
        refuse_value (rd, err, "capabilities.task_io",
                      "a capsule as a whole cannot be granted this");
        return mur_hint (err, "declare it on the hook's entry under artifacts");
    }
    if (c->filesystem && c->filesystem->records.value) {
        refuse_value (rd, err, "capabilities.filesystem.records",
                      "a capsule as a whole cannot be granted this");
        return mur_hint (err, "declare it on the hook's entry under artifacts");
    }
    if (rd->m->config) {
        refuse_value (rd, err, "config", "this key is not read at the top level");
        return mur_hint (err, "move it to the artifact it is meant for: artifacts[].config, or "
                              "inference.driver.config");
    }
    return true;
}

static bool
judge_capsule_capabilities (struct reading *rd, struct mur_error **err)
{
    return judge_capabilities (rd, rd->m->capabilities, "capabilities", err);
}

static bool
refuse_install_under_process (struct reading *rd, struct mur_error **err)
{
    const struct capsule_manifest *m = rd->m;
    if (! m->capabilities->install || ! m->inference ||
        m->inference->transport != TRANSPORT_PROCESS)
        return true;
    return refuse_value (rd, err, "capabilities.install",
                         "nothing can be pulled under inference.transport: process");
}

static int
compare_entries (const void *x, const void *y)
{
    const struct artifact_entry *a = *(const struct artifact_entry *const *)x;
    const struct artifact_entry *b = *(const struct artifact_entry *const *)y;
    int order = strcmp (a->name, b->name);
    return order ? order : (a > b) - (a < b);
}

/* The first of several entries of one name is the one found by it. */
static bool
index_entries (struct reading *rd, struct mur_error **err)
{
    (void)err;
    struct capsule_manifest *m = rd->m;
    m->by_name = arena_new_array (m->arena, const struct artifact_entry *, m->artifacts.len + 1);
    for (size_t i = 0; i < m->artifacts.len; i++)
        m->by_name[i] = &m->artifacts.items[i];
    qsort (m->by_name, m->artifacts.len, sizeof *m->by_name, compare_entries);
    return true;
}

typedef bool judge_fn (struct reading *rd, struct mur_error **err);

static judge_fn *const judges[] = {
    refuse_removed_keys,
    require_identity,
    judge_artifacts,
    index_entries,
    refuse_misplaced,
    judge_capsule_capabilities,
    judge_inference,
    refuse_install_under_process,
    judge_driver_gateways,
    judge_alternate_drivers,
    judge_process_driver,
    judge_prompt_artifact,
    judge_context,
    judge_trace,
    judge_otel,
    judge_door,
    judge_door_and_spawn,
    judge_lifecycle,
    judge_approvals,
    judge_exports,
    judge_control,
    judge_alternates_selectable,
};

/* --- reading --- */

/* Blocks that are always there, so that nobody asks for a default twice. */
static void
fill_absent_blocks (struct reading *rd)
{
    struct capsule_manifest *m = rd->m;
    m->capabilities_are_declared = m->capabilities != NULL;
    if (! m->capabilities) {
        m->capabilities = arena_new0 (m->arena, struct capabilities);
        schema_read (&rd->r, &capabilities_schema, NULL, "capabilities", m->capabilities);
    }
    if (! m->lifecycle) {
        m->lifecycle = arena_new0 (m->arena, struct lifecycle);
        schema_read (&rd->r, &lifecycle_schema, NULL, "lifecycle", m->lifecycle);
    }
    if (m->inference) {
        m->inference->retry_is_declared = m->inference->retry != NULL;
        if (! m->inference->retry) {
            m->inference->retry = arena_new0 (m->arena, struct retry_limits);
            schema_read (&rd->r, &retry_schema, NULL, "inference.retry", m->inference->retry);
        }
    }
}

static bool
judge_all (struct reading *rd, struct mur_error **err)
{
    if (! schema_take_fault (&rd->r, err))
        return false;
    fill_absent_blocks (rd);
    for (size_t i = 0; i < ARRAY_LEN (judges); i++)
        if (! judges[i](rd, err))
            return false;
    settle_scorers (rd);
    return true;
}

static void
keep_unknown (struct reading *rd)
{
    struct capsule_manifest *m = rd->m;
    size_t len = rd->r.unknown.len;
    struct unknown_key *kept = arena_new_array (m->arena, struct unknown_key, len);
    if (len)
        memcpy (kept, rd->r.unknown.items, len * sizeof *kept);
    m->unknown_keys = kept;
    m->unknown_len = len;
    m->unknown_total = rd->r.unknown_total;
}

/* The tree is kept for positions; literal keys are not. */
static void
wipe_literals (struct capsule_manifest *m)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct gateway_block *g = m->artifacts.items[i].gateway;
        if (g && g->written_api_key && ! g->key_reference)
            secret_wipe (g->written_api_key->text, g->written_api_key->len);
    }
}

/* What is read goes to <*out> also when it is refused, as far as it was read. */
static bool
parse (const char *text, size_t len, const char *file, enum manifest_reading how,
       struct capsule_manifest **out, struct mur_error **err)
{
    struct arena *arena = arena_new ();
    struct capsule_manifest *m = *out = arena_new0 (arena, struct capsule_manifest);
    m->arena = arena;
    m->file = arena_strdup (arena, file);
    m->root = yaml_parse (arena, text, len, file, E_MAN_002, err);
    if (! m->root)
        return false;
    struct reading rd = { .m = m, .how = how };
    rd.r = (struct schema_reader){
        .arena = arena, .file = m->file, .root = m->root, .code = E_MAN_002
    };
    schema_read (&rd.r, capsule_schema (), m->root, "", m);
    bool ok = judge_all (&rd, err);
    keep_unknown (&rd);
    schema_reader_clear (&rd.r);
    wipe_literals (m);
    return ok;
}

struct capsule_manifest *
capsule_manifest_parse (const char *text, size_t len, const char *file, enum manifest_reading how,
                        struct mur_error **err)
{
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m = NULL;
    return parse (text, len, file, how, &m, err) ? steal_ptr (&m) : NULL;
}

static void
warn_unknown_key (const struct unknown_key *u)
{
    const char *where = *u->path ? u->path : "the manifest at its top level";
    if (u->suggestion)
        diag_warn (DIAG_MANIFEST, W_SEC_019,
                   "unknown key '%s' in %s has no effect; did you mean '%s'?", u->key, where,
                   u->suggestion);
    else
        diag_warn (DIAG_MANIFEST, W_SEC_019,
                   "unknown key '%s' in %s has no effect; it may come from a newer release", u->key,
                   where);
}

struct capsule_manifest *
capsule_manifest_parse_aloud (const char *text, size_t len, const char *file,
                              enum manifest_reading how, struct mur_error **err)
{
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m = NULL;
    if (parse (text, len, file, how, &m, err))
        return steal_ptr (&m);
    for (size_t i = 0; i < m->unknown_len; i++)
        if (m->unknown_keys[i].suggestion)
            warn_unknown_key (&m->unknown_keys[i]);
    return NULL;
}

struct capsule_manifest *
capsule_manifest_read (const char *path, enum manifest_reading how, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! yaml_read_text (path, E_MAN_002, &text, err))
        return NULL;
    _cleanup_free_ char *shown = fs_shown_path (path);
    struct capsule_manifest *m =
        capsule_manifest_parse_aloud (text.data ? text.data : "", text.len, shown, how, err);
    if (text.data)
        secret_wipe (text.data, text.len);
    return m;
}

void
capsule_manifest_free (struct capsule_manifest *m)
{
    if (! m)
        return;
    for (size_t i = 0; i < m->artifacts.len; i++)
        if (m->artifacts.items[i].gateway)
            secret_free (m->artifacts.items[i].gateway->key_literal);
    arena_free (m->arena); /* m itself lives there */
}

/* --- questions about a manifest --- */

/* It is taken as it is written; whoever packs it is told to quote it, and better hears so now. */
static void
note_unquoted_version (const struct capsule_manifest *m)
{
    const struct yaml_node *version = yaml_get (m->root, "version");
    if (version && yaml_is_scalar (version) && version->kind != YAML_STRING)
        diag_note ("%s:%u:%u: version: %s is taken as the text \"%s\", which mur build and mur "
                   "publish want quoted: version: \"%s\"",
                   m->file, version->line, version->column, version->text, version->text,
                   version->text);
}

void
capsule_manifest_warn_unknown (const struct capsule_manifest *m)
{
    note_unquoted_version (m);
    for (size_t i = 0; i < m->unknown_len; i++)
        warn_unknown_key (&m->unknown_keys[i]);
    if (m->unknown_total > m->unknown_len)
        diag_warn (DIAG_MANIFEST, W_SEC_019, "%zu more unknown keys have no effect",
                   m->unknown_total - m->unknown_len);
    for (size_t i = 0; i < m->artifacts.len; i++)
        if (m->artifacts.items[i].version_is_ignored)
            diag_plain_warning (
                "artifacts[%zu].version of %s is ignored: a local source has no version", i,
                m->artifacts.items[i].name);
    if (m->observability && m->observability->eval)
        for (size_t i = 0; i < m->observability->eval->skipped.len; i++)
            diag_note ("observability.eval.scorers: the type '%s' is not known and is skipped",
                       m->observability->eval->skipped.items[i]);
}

bool
capsule_manifest_fail (const struct capsule_manifest *m, struct mur_error **err,
                       enum diag_code code, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    const struct schema_reader r = { .arena = m->arena, .file = m->file, .root = m->root };
    return schema_fail (&r, err, code, path, "%s", text);
}

struct cap_limits
limits_default (void)
{
    struct schema_reader r = { 0 };
    struct cap_limits limits;
    schema_read (&r, &limits_schema, NULL, "", &limits);
    return limits;
}

struct cap_resources
resources_default (void)
{
    struct schema_reader r = { 0 };
    struct cap_resources resources;
    schema_read (&r, &resources_schema, NULL, "", &resources);
    return resources;
}

uint64_t
lifecycle_tasks_held (const struct lifecycle *l)
{
    switch (l->task_acceptance.value) {
    case ACCEPT_NONE:
        return 0;
    case ACCEPT_SINGLE:
        return 1;
    default:
        return l->queue_depth.value == UINT64_MAX ? UINT64_MAX : l->queue_depth.value + 1;
    }
}
