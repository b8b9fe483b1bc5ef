/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/stage_driver.h"
#include "manifest/text/yaml_tree.h"
#include "policy/check.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "manifest/settings/artifact_manifest.h"
#include "net/auth_header.h"
#include "policy/input_budget.h"
#include "replay/play/player.h"
#include "session/guests/env_limit.h"
#include "session/model/credential.h"
#include "session/model/selection.h"
#include "session/model/steering_internal.h"
#include "session/model/supplied.h"
#include "session/state/session.h"
#include "trace/lines/sent_lists.h"

#include <string.h>
#include <sys/stat.h>

#define LISTED_MAX 8 /* models a hint names */

/* --- gateways --- */

/* The file that holds a key this launch uses can be read by others: said once. */
static void
warn_readable (const struct session *s)
{
    const char *path = s->asked->config->global_path;
    struct stat st;
    if (stat (path, &st) != 0 || ! (st.st_mode & 077))
        return;
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        if (! a->guest.credential ||
            credential_source (a->guest.credential) != GATEWAY_SOURCE_CONFIG)
            continue;
        diag_warn (DIAG_RUNTIME, W_SEC_028,
                   "%s has mode %04o and holds credentials.%s, the gateway key of %s: run chmod "
                   "go-rwx %s",
                   path, (unsigned)(st.st_mode & 07777), a->entry->gateway->key_reference,
                   a->full_name, path);
        return;
    }
}

static bool
stage_gateway (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    const struct gateway_block *block = a->entry->gateway;
    const char *header = NULL, *value = NULL;
    if (block->header) {
        header = block->header;
        value = auth_header_value (header);
    } else if (! artifact_manifest_upstream_auth (a->resolved->package->manifest, E_RUN_025,
                                                  &header, &value, err)) {
        return mur_context (err, "artifact %s has a gateway", a->full_name);
    }
    if (! block->is_keyless)
        a->guest.credential =
            credential_new (s, a->full_name, session_is_driver_entry (s, a->entry), block,
                            s->asked->config->global_path);
    struct gateway_spec spec = {
        .artifact = a->full_name,
        .endpoint = block->endpoint.text,
        .auth_header = header,
        .auth_value = value,
        .is_header_fixed = block->header != NULL,
        .is_keyless = block->is_keyless,
        .is_metered = session_is_driver_entry (s, a->entry),
        .read_key = a->guest.credential ? credential_read : NULL,
        .on_event = a->guest.credential ? credential_event : NULL,
        .ctx = a->guest.credential,
        .redactor = s->redactor,
    };
    a->guest.gateway = gateway_new (&spec, err);
    return a->guest.gateway != NULL;
}

bool
stage_gateways (struct session *s, struct mur_error **err)
{
    if (s->asked->player && ! player_is_live (s->asked->player))
        return true; /* nobody is asked, so no key is read */
    if (! policy_check_gateway_keys (s->policy, config_credential_copy, s->asked->config,
                                     s->asked->config->global_path, err))
        return false;
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->entry->gateway && ! stage_gateway (s, a, err))
            return false;
        if (session_is_driver_entry (s, a->entry) && ! a->entry->gateway && ! a->is_upstream_none) {
            char path[64];
            snprintf (path, sizeof (path), "artifacts[%zu].gateway", i);
            return capsule_manifest_fail (s->manifest, err, E_MAN_003, path,
                                          "driver %s needs a gateway: it calls a provider",
                                          a->full_name);
        }
    }
    warn_readable (s);
    return true;
}

/* --- what the driver may send --- */

static bool
find_model (const struct session *s, struct choice *d, const struct model_limits **found,
            struct mur_error **err)
{
    const struct model_limits *models;
    size_t len;
    *found = NULL;
    if (! artifact_manifest_models (d->artifact->resolved->package->manifest, E_RUN_052, &models,
                                    &len, err))
        return mur_context (err, "driver %s", d->artifact->full_name);
    d->model_caps = arena_new_array (s->arena, struct model_cap, len + 1);
    d->model_cap_count = len;
    for (size_t i = 0; i < len; i++) {
        d->model_caps[i] = (struct model_cap){ arena_strdup (s->arena, models[i].id),
                                               models[i].max_output_tokens };
        if (! *found && strcmp (models[i].id, d->model) == 0)
            *found = &models[i];
    }
    return true;
}

/* The models a driver knows, the first of them; owned. */
static char *
listed_models (const struct choice *d)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < d->model_cap_count && i < LISTED_MAX; i++)
        buf_printf (&out, "%s%s", i ? ", " : "", d->model_caps[i].model);
    if (d->model_cap_count > LISTED_MAX)
        buf_printf (&out, " and %zu more", d->model_cap_count - LISTED_MAX);
    if (! out.len)
        buf_puts (&out, "");
    return buf_steal (&out);
}

static bool
set_budget (struct choice *d, struct mur_error **err)
{
    d->input_budget =
        policy_input_budget (d->window, d->input_ceiling, d->output_cap, &d->budget_basis);
    if (d->window && ! d->input_budget)
        return mur_fail (err, E_RUN_055,
                         "no input budget is left for model %s: an output cap of %llu tokens fills "
                         "the context window of %llu",
                         d->model, (unsigned long long)d->output_cap,
                         (unsigned long long)d->window);
    return true;
}

static bool
set_limits (const struct session *s, struct choice *d, struct mur_error **err)
{
    const struct inference *inference = s->manifest->inference;
    const struct context *context = s->manifest->context;
    const struct model_limits *model;
    if (! find_model (s, d, &model, err))
        return false;
    if (inference->max_tokens.is_set) {
        d->output_cap = inference->max_tokens.value;
        d->output_cap_source = LIMIT_MANIFEST;
    } else if (model) {
        d->output_cap = model->max_output_tokens;
        d->output_cap_source = LIMIT_DRIVER;
    } else {
        _cleanup_free_ char *listed = listed_models (d);
        mur_fail (err, E_RUN_052,
                  "no output cap for driver choice %s: driver %s does not list model %s and "
                  "inference.max_tokens is not set",
                  d->name, d->artifact->full_name, d->model);
        return mur_hint (err, "set inference.max_tokens to what the model may write at most%s%s",
                         *listed ? ", or take a model the driver lists: " : "", listed);
    }
    if (context && context->max_tokens.is_set) {
        d->window = context->max_tokens.value;
        d->window_source = LIMIT_MANIFEST;
    } else if (model) {
        d->window = model->context_window;
        d->window_source = LIMIT_DRIVER;
    }
    d->input_ceiling = model ? model->max_input_tokens : 0;
    if (! model && ! (inference->max_tokens.is_set && d->window))
        diag_warn (
            DIAG_RUNTIME, W_RUN_009,
            "driver %s does not list model %s and context.max_tokens is not set: the context "
            "window is unknown, so nothing is compacted",
            d->artifact->full_name, d->model);
    return set_budget (d, err);
}

/* --- the choices --- */

static struct staged_artifact *
artifact_of (struct session *s, const struct artifact_entry *entry)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].entry == entry)
            return &s->kit.artifacts[i];
    return NULL;
}

static bool
driver_read_config (struct choice *d, const struct inference *inference, struct mur_error **err)
{
    if (! inference->driver->config)
        return true;
    _cleanup_buf_ struct buf config = { 0 };
    if (! yaml_put_json (&config, inference->driver->config, E_MAN_003, err))
        return mur_context (err, "inference.driver.config");
    d->config = buf_steal (&config);
    return true;
}

static bool
check_config (const struct choice *d, struct mur_error **err)
{
    if (! d->config || ! env_limit_traps (d->artifact->resolved->package, strlen (d->config)))
        return true;
    return mur_fail (
        err, E_CAP_010,
        "inference.driver.config has %zu bytes as JSON: driver %s is adapted from WASI "
        "preview 1 and takes at most %d",
        strlen (d->config), d->artifact->full_name, ADAPTED_VALUE_MAX);
}

/* An alternate whose key is nowhere is kept: the key may come while the session runs. */
static void
judge_availability (const struct session *s, struct choice *d, bool is_primary)
{
    d->is_available = is_primary || ! d->artifact->guest.credential ||
                      credential_source (d->artifact->guest.credential) != GATEWAY_SOURCE_NONE;
    if (d->is_available)
        return;
    const char *key = d->artifact->entry->gateway->key_reference;
    diag_warn (DIAG_RUNTIME, W_RUN_003,
               "the driver choice %s (%s, %s) is not available: its key %s is %s", d->name,
               d->artifact->full_name, d->model, key,
               supplied_secrets_owns (s->rooms.steering->supplied, key)
                   ? "one a controller supplies (mur control secret), and has not yet"
                   : "neither in the configuration's credentials nor in the environment");
}

static bool
add_choice (struct session *s, struct choice *d, const char *name, const char *model,
            const struct artifact_entry *entry, struct mur_error **err)
{
    d->name = name;
    d->model = model ? model : "";
    d->artifact = artifact_of (s, entry);
    if (! d->artifact)
        return mur_fail (err, E_RUN_006, "the driver of choice %s is not staged", name);
    if (! check_config (d, err))
        return false;
    judge_availability (s, d, d == &s->choices.primary);
    s->choices.all[s->choices.count++] = d;
    d->budget_basis = "none";
    return s->rooms.harness || set_limits (s, d, err);
}

bool
stage_driver (struct session *s, struct mur_error **err)
{
    const struct inference *inference = s->manifest->inference;
    if (! inference)
        return true;
    s->choices.all = arena_new_array (s->arena, struct choice *, inference->alternates.len + 1);
    if (! driver_read_config (&s->choices.primary, inference, err) ||
        ! add_choice (s, &s->choices.primary, "primary", inference->model, inference->driver_entry,
                      err))
        return false;
    for (size_t i = 0; i < inference->alternates.len; i++) {
        const struct alternate *a = &inference->alternates.items[i];
        struct choice *d = arena_new0 (s->arena, struct choice);
        d->config = s->choices.primary.config;
        if (! add_choice (s, d, a->name, a->model, a->entry, err))
            return false;
    }
    s->rooms.steering->selection = selection_new ();
    s->choices.sent = sent_lists_new ();
    return true;
}

void
stage_driver_free (struct session *s)
{
    for (size_t i = 0; i < s->choices.count; i++)
        strv_free (&s->choices.all[i]->env);
    strv_free (&s->choices.compaction_env);
    sent_lists_free (s->choices.sent);
    free (s->choices.primary.config);
}
