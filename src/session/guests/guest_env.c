/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/guest_env.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/json.h"
#include "manifest/text/grammar.h"
#include "net/gateway.h"
#include "session/state/session.h"
#include "spawn/formation/membership.h"

#include <string.h>

/* Sets NAME=value, replacing an earlier one: later wins, and a guest sees each name once. */
static void
set_env (struct strv *env, const char *assignment)
{
    size_t name_len = (size_t)(strchr (assignment, '=') - assignment) + 1;
    for (size_t i = 0; i < env->len; i++)
        if (strncmp (env->items[i], assignment, name_len) == 0) {
            free (env->items[i]);
            env->items[i] = x_strdup (assignment);
            return;
        }
    strv_push (env, assignment);
}

void
guest_env_set (struct strv *env, const char *name, const char *value)
{
    _cleanup_free_ char *assignment = x_asprintf ("%s=%s", name, value ? value : "");
    if (value) {
        set_env (env, assignment);
        return;
    }
    for (size_t i = 0; i < env->len; i++)
        if (str_starts (env->items[i], assignment)) {
            free (env->items[i]);
            memmove (&env->items[i], &env->items[i + 1],
                     (env->len - i) * sizeof (*env->items)); /* the NULL at the end too */
            env->len--;
            return;
        }
}

/* Host values of env.allow names, past the credential filter. */
void
guest_env_add_allowed (const struct policy *p, struct strv *env)
{
    for (size_t i = 0; i < p->env_allow.len; i++) {
        const char *name = p->env_allow.items[i], *value = getenv (name);
        bool is_backstop;
        if (! value || env_name_is_runtime_owned (name) ||
            env_stripped_by (name, p->commands.strip_env.items, p->commands.strip_env.len,
                             &is_backstop))
            continue;
        guest_env_set (env, name, value);
    }
}

/* The members this one may call, by their virtual addresses. */
static void
add_peers (struct session *s, struct strv *env)
{
    _cleanup_free_ char *peers = s->asked->launcher.membership
                                     ? membership_peers_text (s->asked->launcher.membership)
                                     : NULL;
    if (peers)
        guest_env_set (env, "MURMUR_FORMATION_PEERS", peers);
}

/* What every guest of the session gets. <d>: the choice it speaks of. */
static void
add_runtime_list (struct session *s, const char *url, const struct choice *d, struct strv *env)
{
    if (d) {
        guest_env_set (env, "MURMUR_INFERENCE_TRANSPORT", s->rooms.harness ? "process" : "http");
        guest_env_set (
            env, "MURMUR_INFERENCE_ENDPOINT",
            d->artifact->guest.gateway ? gateway_guest_endpoint (d->artifact->guest.gateway) : "");
        guest_env_set (env, "MURMUR_INFERENCE_MODEL", d->model);
        guest_env_set (env, "MURMUR_INFERENCE_DRIVER", d->artifact->full_name);
        if (d->config)
            guest_env_set (env, "MURMUR_INFERENCE_DRIVER_CONFIG", d->config);
    }
    guest_env_set (env, "MURMUR_CAPSULE_NAME", s->manifest->name);
    guest_env_set (env, "MURMUR_CAPSULE_VERSION", s->manifest->version);
    guest_env_set (env, "MURMUR_SESSION_ID", s->id.text);
    add_peers (s, env);
    guest_env_set (env, "MURMUR_CAPSULE_URL", url);
}

/* observability.eval as a scoring hook reads it. Owned. */
static char *
eval_config_text (const struct eval_block *eval)
{
    _cleanup_json_ json_t *config = json_object ();
    json_t *scorers = json_array ();
    json_set_string (config, "dataset_id", eval->dataset_id);
    json_object_set_new (config, "scorers", scorers);
    for (size_t i = 0; i < eval->scorers.len; i++) {
        const struct scorer *scorer = &eval->scorers.items[i];
        json_t *o = json_object ();
        json_set_string (o, "type", scorer->type);
        json_set_string (o, "name", scorer->name);
        if (str_starts (scorer->type, "max_"))
            json_set_u64 (o, "max", scorer->max.value);
        if (str_eq (scorer->type, "tool_sequence")) {
            json_t *expected = json_array ();
            for (size_t n = 0; n < scorer->expected.len; n++)
                json_array_append_new (expected, json_string (scorer->expected.items[n]));
            json_object_set_new (o, "expected", expected);
        }
        json_array_append_new (scorers, o);
    }
    return json_text (config, JSON_TEXT_SORTED);
}

static void
add_observability (struct session *s, struct strv *env)
{
    const struct observability *o = s->manifest->observability;
    const struct eval_block *eval = o ? o->eval : NULL;
    if (o && o->otel_endpoint)
        guest_env_set (env, "MURMUR_OTEL_ENDPOINT", o->otel_endpoint);
    if (eval) {
        _cleanup_free_ char *config = eval_config_text (eval);
        guest_env_set (env, "MURMUR_EVAL_CONFIG", config);
    }
    if (s->asked->case_id)
        guest_env_set (env, "MURMUR_CASE_ID", s->asked->case_id);
    const char *dataset_id = s->asked->dataset_id ? s->asked->dataset_id
                             : eval               ? eval->dataset_id
                                                  : NULL;
    if (dataset_id)
        guest_env_set (env, "MURMUR_DATASET_ID", dataset_id);
}

/* Its configuration first, so that it cannot shadow what follows. */
void
guest_env_fill_hook (struct session *s, struct staged_artifact *a)
{
    strv_free (&a->guest.env);
    if (a->guest.config_env)
        set_env (&a->guest.env, a->guest.config_env);
    add_observability (s, &a->guest.env);
    if (s->asked->launcher.formation_id)
        guest_env_set (&a->guest.env, "MURMUR_FORMATION_ID", s->asked->launcher.formation_id);
    add_peers (s, &a->guest.env);
    if (a->guest.gateway)
        guest_env_set (&a->guest.env, "MURMUR_GATEWAY_ENDPOINT",
                       gateway_guest_endpoint (a->guest.gateway));
}

/* The order of session.md 4.2: later wins. */
static void
build_env_for (struct session *s, const char *url, const struct choice *d,
               const struct staged_artifact *a, bool with_gateway, struct strv *env)
{
    strv_free (env);
    guest_env_add_allowed (s->policy, env);
    if (a && a->guest.config_env)
        set_env (env, a->guest.config_env);
    add_runtime_list (s, url, d, env);
    if (a && with_gateway && a->guest.gateway)
        guest_env_set (env, "MURMUR_GATEWAY_ENDPOINT", gateway_guest_endpoint (a->guest.gateway));
}

static void
build_env (struct session *s, const char *url, const struct staged_artifact *a, bool with_gateway,
           struct strv *env)
{
    build_env_for (s, url, s->manifest->inference ? &s->choices.primary : NULL, a, with_gateway,
                   env);
}

/* inference.compaction.driver_config laid over the driver's own. */
static void
build_compaction_env (struct session *s)
{
    const struct compaction *c = s->manifest->inference->compaction;
    if (! c || ! c->driver_config)
        return;
    _cleanup_json_ json_t *config = s->choices.primary.config
                                        ? json_loads (s->choices.primary.config, 0, NULL)
                                        : json_object ();
    _cleanup_json_ json_t *over = yaml_to_json (c->driver_config, E_MAN_003, NULL);
    if (! json_is_object (over) || ! json_is_object (config))
        return;
    json_object_update (config, over);
    _cleanup_free_ char *text = json_text (config, JSON_TEXT_ORDERED);
    strv_free (&s->choices.compaction_env);
    for (size_t i = 0; i < s->choices.primary.env.len; i++)
        strv_push (&s->choices.compaction_env, s->choices.primary.env.items[i]);
    guest_env_set (&s->choices.compaction_env, "MURMUR_INFERENCE_DRIVER_CONFIG", text);
}

void
guest_env_fill (struct session *s, const char *url)
{
    build_env (s, url, NULL, false, &s->kit.guest_env);
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->component && a->role != ROLE_HOOK)
            build_env (s, url, a, a->guest.gateway && ! gateway_is_metered (a->guest.gateway),
                       &a->guest.env);
    }
    for (size_t i = 0; i < s->choices.count; i++)
        build_env_for (s, url, s->choices.all[i], s->choices.all[i]->artifact, true,
                       &s->choices.all[i]->env);
    if (s->choices.count)
        build_compaction_env (s);
}

void
guest_env_fill_tool (struct session *s, const char *url, struct staged_artifact *a)
{
    build_env (s, url, a, false, &a->guest.env);
}
