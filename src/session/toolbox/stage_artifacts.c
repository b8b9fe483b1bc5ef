/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/stage_artifacts.h"
#include "artifact/package/judge.h"
#include "fs/paths.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/text/yaml_tree.h"
#include "manifest/text/yaml_write.h"
#include "policy/check.h"
#include "policy/warn.h"

#include "artifact/names/name.h"
#include "artifact/names/wit.h"
#include "artifact/package/skill_head.h"
#include "artifact/sources/source.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "host/process_driver.h"
#include "host/tool.h"
#include "manifest/settings/artifact_manifest.h"
#include "mcp/pinned.h"
#include "session/guests/env_limit.h"
#include "session/guests/guests.h"
#include "session/model/credential.h"
#include "session/servers/stage_server.h"
#include "session/state/session.h"

#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define SKILL_LIMIT_BYTES     ((size_t)16 * 1024 * 1024)
#define SLOW_TO_COMPILE_BYTES ((size_t)2 * 1024 * 1024) /* a second and more */

static const char empty_schema[] = "{\"properties\":{},\"type\":\"object\"}";

/* --- what the packed manifest says of a tool --- */

/* The schema as JSON: a string that holds JSON text, or YAML. NULL when it is neither. */
static json_t *
schema_json (const struct yaml_node *node)
{
    const char *text = yaml_text (node);
    if (text && node->kind == YAML_STRING)
        return json_parse (text, strlen (text), "input_schema", E_MAN_003, NULL);
    return yaml_to_json (node, E_MAN_003, NULL);
}

static void
take_schema (struct staged_artifact *a, const struct yaml_node *node)
{
    _cleanup_json_ json_t *schema = node ? schema_json (node) : NULL;
    if (! json_is_object (schema)) {
        a->shown.is_schema_malformed = node != NULL;
        a->shown.parameters = x_strdup (empty_schema);
        return;
    }
    a->shown.parameters = json_text (schema, JSON_TEXT_SORTED);
    const json_t *required = json_object_get (schema, "required");
    if (! required)
        return;
    if (! json_is_array (required))
        a->shown.is_schema_malformed = true;
    for (size_t i = 0; i < json_array_size (required); i++) {
        const char *name = json_string_value (json_array_get (required, i));
        if (name)
            strv_push (&a->shown.required, name);
        else
            a->shown.is_schema_malformed = true;
    }
    if (a->shown.is_schema_malformed)
        strv_free (&a->shown.required);
}

static void
take_output_schema (struct staged_artifact *a, const struct yaml_node *node)
{
    _cleanup_json_ json_t *schema = node ? schema_json (node) : NULL;
    if (json_is_object (schema) && str_eq (json_get_string (schema, "type"), "object"))
        a->shown.output_schema = json_text (schema, JSON_TEXT_SORTED);
}

static void
take_manifest (struct staged_artifact *a, const struct package *p)
{
    const struct artifact_manifest *m = p->manifest;
    a->manifest_text = x_strndup (p->manifest_text, p->manifest_len);
    a->manifest_len = p->manifest_len;
    a->shown.description = m->description ? x_strdup (m->description) : NULL;
    a->is_upstream_none = m->has_upstream_none;
    if (a->role == ROLE_TOOL) {
        take_schema (a, m->input_schema);
        take_output_schema (a, m->output_schema);
    }
}

/* A skill without a description is described by its own head. */
static void
describe_skill (struct staged_artifact *a)
{
    a->shown.parameters = x_strdup (empty_schema);
    if (a->shown.description && a->shown.description[strspn (a->shown.description, " \t\r\n")])
        return;
    free (a->shown.description);
    a->shown.description = skill_head_description (a->skill_text.data, a->skill_text.len);
}

/* --- skills from a folder --- */

/* The path of skill.md (any case, first match) in a folder, or NULL. */
static char *
find_skill_file (const char *dir_path)
{
    _cleanup_closedir_ DIR *dir = opendir (dir_path);
    for (struct dirent *e; dir && (e = readdir (dir));)
        if (strcasecmp (e->d_name, "skill.md") == 0)
            return x_asprintf ("%s/%s", dir_path, e->d_name);
    return NULL;
}

/* A package or a component is no text, and what is no tool or skill is no skill either. */
static bool
is_skill_text (struct staged_artifact *a, const char *path, struct mur_error **err)
{
    bool is_binary =
        a->skill_text.len && memchr (a->skill_text.data, '\0', a->skill_text.len) != NULL;
    if (! is_binary && (a->role == ROLE_SKILL || a->role == ROLE_TOOL)) {
        a->role = ROLE_SKILL;
        return true;
    }
    if (is_binary)
        mur_fail (err, E_IO_001, "the source of %s: %s is no skill text", a->tool_name, path);
    else
        mur_fail (err, E_IO_001, "%s: a source holds a skill, and this is declared as a %s",
                  a->tool_name, artifact_role_name (a->role));
    return mur_hint (err,
                     "a source is a skill.md or its folder; `mur publish` puts a package into the "
                     "store, where `name: local/%s` with its version finds it",
                     a->tool_name);
}

static bool
read_local_skill (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    const char *source = a->entry->source;
    _cleanup_free_ char *path =
        source[0] == '/' ? x_strdup (source) : x_asprintf ("%s/%s", s->asked->file.dir, source);
    struct stat st;
    if (stat (path, &st) != 0)
        return mur_fail_errno (err, E_IO_001, "the source of skill %s: %s", a->tool_name, path);
    if (S_ISDIR (st.st_mode)) {
        char *file = find_skill_file (path);
        if (! file)
            return mur_fail (err, E_IO_001, "the source of skill %s: no skill.md in %s",
                             a->tool_name, path);
        free (path);
        path = file;
    }
    if (! fs_read_path (path, SKILL_LIMIT_BYTES, &a->skill_text, err))
        return mur_context (err, "while reading skill %s", a->tool_name);
    if (! is_skill_text (a, path, err))
        return false;
    text_form_normalise (&a->skill_text);
    sha256_hex (a->skill_text.data ? a->skill_text.data : "", a->skill_text.len, a->sha256);
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_add_text (&w, "name", a->tool_name);
    yaml_add_text (&w, "version", a->version);
    yaml_add_text (&w, "runtime", "skill");
    a->manifest_text = yaml_writer_finish (&w);
    a->manifest_len = strlen (a->manifest_text);
    describe_skill (a);
    return true;
}

/* --- components --- */

struct wasm_source {
    const struct package *package;
    struct buf wasm;
    const char *name;
};

static bool
give_wasm (void *ctx, const void **wasm, size_t *len, struct mur_error **err)
{
    struct wasm_source *source = ctx;
    if (! package_read_wasm (source->package, &source->wasm, err))
        return false;
    *wasm = source->wasm.data;
    *len = source->wasm.len;
    if (*len >= SLOW_TO_COMPILE_BYTES)
        diag_progress ("compiling %s (%zu MB); later runs take what this one compiled",
                       source->name, *len >> 20);
    return true;
}

static bool
load_component (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    const struct package *p = a->resolved->package;
    /* Also on a hit the archive must select exactly one root component (artifacts.md 12). */
    if (! package_root_wasm (p, E_IO_003, err))
        return mur_context (err, "while staging %s@%s", a->full_name, a->version);
    struct wasm_source source = { p, { 0 }, a->full_name };
    a->component = guests_compile (s, p->sha256, give_wasm, &source, err);
    buf_free (&source.wasm);
    return a->component || mur_context (err, "while staging %s@%s", a->full_name, a->version);
}

/* --- what an http driver's interfaces must be (artifacts.md 11) --- */

#define STREAM_INTERFACE "murmur:stream/events@0.1.0"

static bool
judge_driver_imports (const struct staged_artifact *a, const struct wit_contracts *contracts,
                      struct mur_error **err)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    const char *unknown = NULL;
    for (size_t i = 0; i < contracts->imports.len; i++) {
        const char *name = contracts->imports.items[i];
        bool is_stream = str_starts (name, "murmur:stream/");
        if (is_stream || str_starts (name, "murmur:text/"))
            wit_judge (name, WIT_IMPORTS, wit_served_level (), &misfits);
        if (is_stream && ! str_eq (name, STREAM_INTERFACE))
            unknown = name;
    }
    if (misfits.len)
        return wit_refuse (a->full_name, a->version, &misfits, err);
    return ! unknown || mur_fail (err, E_RUN_029,
                                  "driver %s@%s imports %s; of murmur:stream this version has %s",
                                  a->full_name, a->version, unknown, STREAM_INTERFACE);
}

/* Read from the verified bytes: a sidecar proves nothing. What the loop calls, it looks up at each
 * call. */
static bool
check_http_driver (struct staged_artifact *a, struct mur_error **err)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    if (package_contracts (a->resolved->package, &contracts, err) != PACKAGE_CONTRACTS)
        return mur_context (err, "while staging driver %s@%s", a->full_name, a->version);
    if (! judge_driver_imports (a, &contracts, err))
        return false;
    const char *process = wit_export_starting (&contracts, "murmur:driver/process@");
    if (process)
        return mur_fail (err, E_RUN_030,
                         "driver %s@%s exports %s, which is for inference.transport: process; "
                         "transport http needs %s",
                         a->full_name, a->version, process, host_tool_interface);
    return component_exports (a->component, host_tool_interface) ||
           mur_fail (err, E_RUN_001,
                     "driver %s@%s does not export %s; rebuild it for this interface", a->full_name,
                     a->version, host_tool_interface);
}

/* --- what a process driver must export --- */

static bool
check_process_driver (const struct staged_artifact *a, struct mur_error **err)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (package_contracts (a->resolved->package, &contracts, err) != PACKAGE_CONTRACTS)
        return mur_context (err, "while staging driver %s@%s", a->full_name, a->version);
    const char *process = wit_export_starting (&contracts, "murmur:driver/process@");
    if (! process)
        return mur_fail (
            err, E_RUN_029,
            "driver %s@%s does not export %s, which inference.transport: process needs",
            a->full_name, a->version, host_process_interface);
    wit_judge (process, WIT_EXPORTS, wit_served_level (), &misfits);
    if (misfits.len)
        return wit_refuse (a->full_name, a->version, &misfits, err);
    return str_eq (process, host_process_interface) ||
           mur_fail (err, E_RUN_029, "driver %s@%s exports %s; transport process needs %s",
                     a->full_name, a->version, process, host_process_interface);
}

/* --- one artifact --- */

static struct resolve_use
use_of (const struct staged_artifact *a, char field[40], size_t index)
{
    snprintf (field, 40, "artifacts[%zu]", index);
    struct resolve_use use = { .field = field };
    use.use_name = a->role == ROLE_HOOK     ? "hook"
                   : a->role == ROLE_DRIVER ? "driver"
                   : a->entry->gateway      ? "gateway holder"
                   : a->is_prompt           ? "system prompt"
                                            : NULL;
    use.is_plain = ! use.use_name;
    return use;
}

/* A capsule that can write to what is kept of verified packages could have it say anything. */
static bool
may_use_heads (const struct session *s)
{
    const char *root = s->asked->work.root;
    _cleanup_free_ char *heads = x_asprintf ("%s/mcp", s->policy->request->home_dir);
    _cleanup_free_ char *resolved = fs_canonical_path (heads, NULL);
    _cleanup_free_ char *resolved_root = root ? fs_canonical_path (root, NULL) : NULL;
    return resolved && resolved_root && ! fs_path_is_within (resolved, resolved_root);
}

/* It may never be called, so this refuses nothing. */
static void
warn_large_config (const struct staged_artifact *a)
{
    size_t len = a->guest.config_env ? strlen (strchr (a->guest.config_env, '=') + 1) : 0;
    if (env_limit_traps (a->resolved->package, len))
        diag_plain_warning ("the config of %s has %zu bytes: its component is adapted from WASI "
                            "preview 1, and its calls trap with more than %d",
                            a->full_name, len, ADAPTED_VALUE_MAX);
}

static void
warn_no_tool (const struct staged_artifact *a)
{
    if (a->role == ROLE_TOOL && ! component_exports (a->component, host_tool_interface))
        diag_plain_warning ("%s@%s is declared as a tool and does not export %s: every call of it "
                            "fails (artifacts[].runtime says what an artifact is)",
                            a->full_name, a->version, host_tool_interface);
}

static bool
take_payload (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    if (a->resolved->is_native) {
        if (a->resolved->is_untagged_native)
            diag_warn (DIAG_RUNTIME, W_REG_001,
                       "%s@%s is native and does not say for which platform", a->full_name,
                       a->version);
        policy_warn_native_entry (a->entry);
        if (a->entry->gateway)
            return mur_fail (err, E_CAP_017,
                             "artifact %s is native: a native tool cannot have a gateway",
                             a->full_name);
        return true;
    }
    if (a->role == ROLE_SKILL) {
        if (! package_read_entry (a->resolved->package, "skill.md", &a->skill_text, err))
            return mur_context (err, "while staging skill %s@%s", a->full_name, a->version);
        describe_skill (a);
        return true;
    }
    if (a->role == ROLE_MCP)
        return staged_server_read (a, err) ||
               mur_context (err, "while staging %s@%s", a->full_name, a->version);
    if (! load_component (s, a, err))
        return false;
    warn_large_config (a);
    warn_no_tool (a);
    const struct inference *inf = s->manifest->inference;
    if (inf && inf->transport == TRANSPORT_PROCESS && inf->driver_entry == a->entry)
        return check_process_driver (a, err);
    return ! session_is_driver_entry (s, a->entry) || check_http_driver (a, err);
}

static bool
stage_artifact (struct session *s, size_t index, struct mur_error **err)
{
    struct staged_artifact *a = &s->kit.artifacts[index];
    a->entry = &s->manifest->artifacts.items[index];
    a->grant = &s->policy->grants[index];
    a->role = a->entry->role;
    a->tool_name = a->entry->tool_name;
    a->full_name = a->entry->name;
    a->guest.scope_fd = a->guest.state_fd = -1;
    a->is_prompt = s->manifest->inference && s->manifest->inference->prompt_entry == a->entry;
    a->origin = LOCK_OPERATOR;
    if (a->entry->source) {
        a->version = x_strdup ("local");
        return read_local_skill (s, a, err);
    }
    char field[40];
    struct resolve_use use = use_of (a, field, index);
    if (a->role == ROLE_MCP && may_use_heads (s))
        use.head_entry = MCP_PINNED_FILE;
    a->resolved = artifact_resolve (s->asked->stores, s->asked->lock, a->entry->name,
                                    a->entry->version, &use, err);
    if (! a->resolved)
        return false;
    _cleanup_free_ char *odd =
        package_misdeclared (a->resolved->package, a->full_name, artifact_role_name (a->role));
    if (odd)
        diag_warn (DIAG_RUNTIME, W_REG_005, "%s", odd);
    a->version = x_strdup (a->resolved->version);
    if (a->resolved->payload.sha256)
        snprintf (a->sha256, sizeof (a->sha256), "%s", a->resolved->payload.sha256);
    a->origin = a->resolved->origin;
    a->pulled_by = a->resolved->session ? x_strdup (a->resolved->session) : NULL;
    if (a->role == ROLE_HOOK &&
        ! artifact_manifest_hook (a->resolved->package->manifest, a->tool_name, a->version,
                                  &a->contract, err))
        return false;
    take_manifest (a, a->resolved->package);
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_free_ char *config = policy_artifact_config (a->entry, s->manifest, &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    if (config)
        a->guest.config_env = x_asprintf ("MURMUR_ARTIFACT_CONFIG=%s", config);
    return take_payload (s, a, err);
}

bool
stage_pulled (struct session *s, struct staged_artifact *a, const char *full_name,
              enum artifact_role role, struct package *package, struct mur_error **err)
{
    struct artifact_entry *entry = arena_new0 (s->arena, struct artifact_entry);
    struct artifact_grant *grant = arena_new0 (s->arena, struct artifact_grant);
    entry->name = arena_strdup (s->arena, full_name);
    entry->tool_name = name_bare (entry->name);
    entry->role = role;
    grant->entry = entry;
    grant->opens_work_dir = true;
    grant->deadline_seconds = s->policy->limits.deadline_seconds.value;
    *a = (struct staged_artifact){ .entry = entry,
                                   .grant = grant,
                                   .tool_name = entry->tool_name,
                                   .full_name = entry->name,
                                   .role = role,
                                   .origin = LOCK_RUNTIME,
                                   .guest.scope_fd = -1,
                                   .guest.state_fd = -1 };
    a->version = x_strdup (package->manifest->version);
    a->pulled_by = x_strdup (s->id.text);
    a->resolved = x_new0 (struct resolved);
    a->resolved->package = package;
    a->resolved->name = x_strdup (full_name);
    a->resolved->version = x_strdup (a->version);
    a->resolved->is_native = package->manifest->packaging == PACKAGING_NATIVE;
    a->resolved->origin = LOCK_RUNTIME;
    take_manifest (a, package);
    return take_payload (s, a, err);
}

#define PULLED_MAX 256 /* in one session */

bool
stage_artifacts (struct session *s, struct mur_error **err)
{
    size_t count = s->manifest->artifacts.len;
    s->kit.artifact_cap = count + (s->policy->install.is_declared ? PULLED_MAX : 0);
    s->kit.artifacts = x_new_array (struct staged_artifact, s->kit.artifact_cap + 1);
    for (size_t i = 0; i < count; i++) {
        s->kit.artifact_count = i + 1;
        if (! stage_artifact (s, i, err))
            return false;
    }
    return true;
}

void
staged_artifact_clear (struct staged_artifact *a)
{
    staged_server_free (a->server);
    free (a->native_path);
    strv_free (&a->native_closure);
    free (a->version);
    free (a->pulled_by);
    resolved_freep (&a->resolved);
    free (a->manifest_text);
    buf_free (&a->skill_text);
    component_freep (&a->component);
    free (a->shown.description);
    free (a->shown.parameters);
    free (a->shown.output_schema);
    strv_free (&a->shown.required);
    free (a->guest.config_env);
    allow_list_free (&a->guest.allow);
    if (a->guest.scope_fd >= 0)
        close (a->guest.scope_fd);
    if (a->guest.state_fd >= 0)
        close (a->guest.state_fd);
    gateway_freep (&a->guest.gateway);
    credential_freep (&a->guest.credential);
    strv_free (&a->guest.env);
}

void
stage_artifacts_free (struct session *s)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        staged_artifact_clear (&s->kit.artifacts[i]);
    free (s->kit.artifacts);
    free (s->kit.tools);
    strv_free (&s->kit.guest_env);
    if (s->kit.sources)
        remote_free (s->kit.sources);
}
