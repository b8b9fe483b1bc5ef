/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/start_line.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/version.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/capsule_mask.h"
#include "replay/play/player.h"
#include "sandbox/host/host.h"
#include "session/model/credential.h"
#include "session/stage/staged.h"
#include "session/state/deadline.h"
#include "session/state/session.h"
#include "session/toolbox/told.h"
#include "spawn/formation/membership.h"
#include "trace/lines/blobs.h"
#include "trace/lines/writer.h"

#include <string.h>
#include <sys/utsname.h>

static const char *
source_name (enum limit_source source)
{
    static const char *const names[] = { "none", "manifest", "driver" };
    return names[source];
}

static void
append_limit (struct buf *b, const char *key, uint64_t value)
{
    if (value)
        buf_printf (b, "\"%s\":%llu,", key, (unsigned long long)value);
    else
        buf_printf (b, "\"%s\":null,", key);
}

static char *
model_limits_json (const struct choice *d)
{
    struct buf b = { 0 };
    buf_putc (&b, '{');
    append_limit (&b, "max_output_tokens", d->output_cap);
    buf_printf (&b, "\"max_output_tokens_source\":\"%s\",", source_name (d->output_cap_source));
    append_limit (&b, "context_window", d->window);
    buf_printf (&b, "\"context_window_source\":\"%s\",", source_name (d->window_source));
    append_limit (&b, "max_input_tokens", d->input_ceiling);
    buf_printf (&b, "\"max_input_tokens_source\":\"%s\",", d->input_ceiling ? "driver" : "none");
    append_limit (&b, "input_budget", d->input_budget);
    buf_printf (&b, "\"input_budget_basis\":\"%s\"}", d->budget_basis);
    return buf_steal (&b);
}

static const char *
source_of (const struct staged_artifact *a)
{
    return gateway_source_name (a->guest.credential ? credential_source (a->guest.credential)
                                                    : GATEWAY_SOURCE_NONE);
}

static void
append_gateway (struct buf *b, const struct staged_artifact *a)
{
    buf_puts (b, b->len > 1 ? ",{\"artifact\":" : "{\"artifact\":");
    json_append_string (b, a->full_name, strlen (a->full_name));
    buf_puts (b, ",\"host\":");
    const char *host = gateway_host (a->guest.gateway);
    json_append_string (b, host, strlen (host));
    buf_printf (b, ",\"credential_source\":\"%s\",\"metered\":%s}", source_of (a),
                gateway_is_metered (a->guest.gateway) ? "true" : "false");
}

/* The inference gateway first. */
static char *
gateways_json (const struct session *s)
{
    struct buf b = { 0 };
    buf_putc (&b, '[');
    if (s->choices.primary.artifact->guest.gateway)
        append_gateway (&b, s->choices.primary.artifact);
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].guest.gateway &&
            &s->kit.artifacts[i] != s->choices.primary.artifact)
            append_gateway (&b, &s->kit.artifacts[i]);
    buf_putc (&b, ']');
    return buf_steal (&b);
}

static char *
runtime_artifacts_json (const struct session *s)
{
    _cleanup_json_ json_t *list = json_array ();
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->origin == LOCK_RUNTIME)
            json_array_append_new (list, json_pack ("{s:s,s:s,s:s,s:s,s:s}", "name", a->full_name,
                                                    "version", a->version, "origin", "runtime",
                                                    "session", a->pulled_by ? a->pulled_by : "",
                                                    "trust", "untrusted"));
    }
    return json_text (list, JSON_TEXT_ORDERED);
}

static json_t *
name_list (const struct str_list *names)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < names->len; i++)
        json_array_append_new (list, json_string (names->items[i]));
    return list;
}

/* What may be changed while the session runs, names only; NULL without a control block. */
static char *
control_json (const struct session *s)
{
    const struct control *c = s->manifest->control;
    if (! c)
        return NULL;
    _cleanup_json_ json_t *out = json_object ();
    json_object_set_new (out, "settings", name_list (&c->settings));
    json_object_set_new (out, "secrets", name_list (&c->secrets));
    if (c->agent_settings.len)
        json_object_set_new (out, "agent_settings", name_list (&c->agent_settings));
    return json_text (out, JSON_TEXT_ORDERED);
}

/* The driver choices, the primary first; NULL when there is one. */
static char *
choices_json (const struct session *s)
{
    struct buf b = { 0 };
    if (s->choices.count < 2)
        return NULL;
    for (size_t i = 0; i < s->choices.count; i++) {
        const struct choice *d = s->choices.all[i];
        _cleanup_free_ char *limits = model_limits_json (d);
        buf_printf (&b, "%s{\"name\":\"%s\",\"driver\":", i ? "," : "[", d->name);
        json_append_string (&b, d->artifact->full_name, strlen (d->artifact->full_name));
        buf_puts (&b, ",\"model\":");
        json_append_string (&b, d->model, strlen (d->model));
        buf_printf (&b, ",\"credential_source\":\"%s\",\"available\":%s,\"model_limits\":%s}",
                    source_of (d->artifact), d->is_available ? "true" : "false", limits);
    }
    buf_putc (&b, ']');
    return buf_steal (&b);
}

/* --- what ran --- */

/* The text of the manifest with its secrets masked: what a digest and a body of it are made of. */
static void
manifest_text (const struct session *s, struct buf *out)
{
    const struct stage_request *q = s->asked;
    if (q->file.text)
        capsule_manifest_mask (s->manifest, q->file.text, q->file.len, out);
    else if (q->capsule.package)
        buf_append (out, q->capsule.package->package->manifest_text,
                    q->capsule.package->package->manifest_len);
}

static json_t *
artifacts_list (const struct session *s)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        json_t *one = json_object ();
        json_set_string (one, "name", a->full_name);
        json_set_string (one, "version", a->version);
        json_set_string (one, "role", artifact_role_name (a->role));
        json_set_string (one, "sha256", a->sha256[0] ? a->sha256 : NULL);
        json_array_append_new (list, one);
    }
    return list;
}

static const char *
capture_name (enum trace_capture capture)
{
    static const char *const names[] = { "none", "meta", "content", "replay" };
    return names[capture];
}

struct provenance {
    struct buf manifest;
    char manifest_sha[SHA256_HEX_LEN + 1], lock_sha[SHA256_HEX_LEN + 1];
    char *artifacts, *path, *replay_of;
    struct utsname host;
};

static void
provenance_clear (struct provenance *v)
{
    buf_free (&v->manifest);
    free (v->artifacts);
    free (v->path);
    free (v->replay_of);
}

/* {session_id, modes, from}: which record runs again, and how. */
static char *
replay_of_json (const struct player *p)
{
    static const char *const names[] = { "recorded", "served", "rerun", "live" };
    const struct play_modes *m = player_modes (p);
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "session_id", player_record (p)->session_id);
    json_object_set_new (o, "modes",
                         json_pack ("{s:s,s:s,s:s}", "model", names[m->model], "tools",
                                    names[m->tools], "hooks", names[m->hooks]));
    if (m->has_from)
        json_object_set_new (o, "from",
                             json_pack ("{s:I,s:I}", "task", (json_int_t)m->from_task, "turn",
                                        (json_int_t)m->from_turn));
    return json_text (o, JSON_TEXT_ORDERED);
}

static void
tell_player (const struct session *s, const struct provenance *v, const char *prompt_sha)
{
    size_t count = s->kit.artifact_count;
    _cleanup_free_ struct rec_artifact *all = x_new_array (struct rec_artifact, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        all[i] = (struct rec_artifact){ a->full_name, a->version, artifact_role_name (a->role),
                                        a->sha256[0] ? a->sha256 : NULL };
    }
    const struct play_facts now = { MUR_VERSION,
                                    v->host.machine,
                                    v->manifest_sha,
                                    v->manifest.data,
                                    prompt_sha[0] ? prompt_sha : NULL,
                                    v->lock_sha[0] ? v->lock_sha : NULL,
                                    all,
                                    count };
    player_set_facts (s->asked->player, &now);
}

static bool
provenance_fill (const struct session *s, struct provenance *v, struct mur_error **err)
{
    const struct stage_request *q = s->asked;
    _cleanup_json_ json_t *artifacts = artifacts_list (s);
    manifest_text (s, &v->manifest);
    sha256_hex (v->manifest.data ? v->manifest.data : "", v->manifest.len, v->manifest_sha);
    if (q->lock && q->lock->base)
        sha256_hex (q->lock->base, strlen (q->lock->base), v->lock_sha);
    v->artifacts = json_text (artifacts, JSON_TEXT_ORDERED);
    if (q->file.name)
        v->path = x_asprintf ("%s/%s", q->file.dir, q->file.name);
    if (q->player)
        v->replay_of = replay_of_json (q->player);
    uname (&v->host);
    return session_capture (s) < CAPTURE_CONTENT ||
           trace_blob_store (s->places.records, v->manifest_sha, v->manifest.data, v->manifest.len,
                             err);
}

static bool
hash_prompt (struct session *s, char sha[SHA256_HEX_LEN + 1], struct mur_error **err)
{
    const char *prompt = told_prompt (s);
    if (! prompt)
        return true;
    size_t len = strlen (prompt);
    sha256_hex (prompt, len, sha);
    return session_capture (s) < CAPTURE_CONTENT ||
           trace_blob_store (s->places.records, sha, prompt, len, err);
}

bool
start_line_write (struct session *s, struct mur_error **err)
{
    const struct inference *inference = s->manifest->inference;
    const struct containment *c = host_decide (s->asked->decision);
    const uint64_t machine = s->asked->config->machine_tokens_per_day;
    char prompt_sha[SHA256_HEX_LEN + 1] = "";
    _cleanup_strv_ struct strv capabilities = { 0 }, tools = { 0 }, callees = { 0 };
    _cleanup_free_ char *limits = s->rooms.harness ? NULL : model_limits_json (&s->choices.primary);
    _cleanup_free_ char *gateways = gateways_json (s);
    _cleanup_free_ char *pins = runtime_artifacts_json (s);
    _cleanup_free_ char *deadline = deadline_json (s->deadline);
    _cleanup_free_ char *control = control_json (s), *choices = choices_json (s);
    const struct membership *m = s->asked->launcher.membership;
    static char *const none[] = { NULL };
    for (size_t i = 0; m && i < membership_callee_count (m); i++)
        strv_push (&callees, membership_callee (m, i));
    session_list_capabilities (s, &capabilities);
    for (size_t i = 0; i < s->kit.tool_count; i++)
        strv_push (&tools, s->kit.tools[i].name);
    __attribute__ ((cleanup (provenance_clear))) struct provenance ran = { 0 };
    if (! hash_prompt (s, prompt_sha, err) || ! provenance_fill (s, &ran, err))
        return false;
    const struct strv *changed = s->asked->file.changed;
    if (s->asked->player)
        tell_player (s, &ran, prompt_sha);
    return TRACE (
        s->trace, err, session_start, .capsule_name = s->manifest->name,
        .capsule_version = s->manifest->version, .model = s->choices.primary.model,
        .max_turns = { inference->max_turns.is_set, (int64_t)inference->max_turns.value },
        .model_limits = limits,
        .max_session_tokens = { inference->max_session_tokens.is_set,
                                (int64_t)inference->max_session_tokens.value },
        .machine_tokens_per_day = { machine != 0, (int64_t)machine }, .deadline = deadline,
        .capabilities = capabilities.items, .tools_declared = tools.items,
        .containment_declared = containment_name (c->declared),
        .containment_achieved = containment_name (c->achieved),
        .workdir_exec = s->policy->files.exec_allowed, .userns_grant = c->facts.userns_grant,
        .effective_grants = s->rooms.staged->effective_grants,
        .system_prompt_source = told_prompt_source (s),
        .system_prompt_sha256 = prompt_sha[0] ? prompt_sha : NULL,
        .credential_source = source_of (s->choices.primary.artifact), .gateways = gateways,
        .control = control, .inference_choices = choices,
        .tool_refresh = s->rooms.harness                                    ? NULL
                        : inference->tool_refresh == TOOL_REFRESH_IMMEDIATE ? "immediate"
                                                                            : "compaction",
        .runtime_artifacts = pins, .host_facts = s->rooms.staged->host_facts,
        .resumed_from = s->asked->resume.session, .context_id = s->asked->context_id,
        .spawned_by = s->asked->launcher.spawner->session_id,
        .delegation_id = s->asked->launcher.spawner->delegation_id,
        .workdir_snapshot = s->asked->launcher.spawner->workdir_snapshot,
        .formation_id = s->asked->launcher.formation_id,
        .formation_member = m ? membership_member (m) : NULL,
        .formation_callees = m ? (callees.items ? callees.items : none) : NULL,
        .mur_version = MUR_VERSION, .arch = ran.host.machine,
        .capture = capture_name (session_capture (s)),
        .fence_word = session_capture (s) >= CAPTURE_CONTENT ? s->fence_word.text : NULL,
        .manifest_sha256 = ran.manifest_sha, .manifest_path = ran.path,
        .lock_sha256 = ran.lock_sha[0] ? ran.lock_sha : NULL,
        .changed_keys = changed && changed->len ? changed->items : NULL, .artifacts = ran.artifacts,
        .replay_of = ran.replay_of);
}
