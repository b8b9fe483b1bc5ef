/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging inference: transports, prompts, drivers, alternates, and the cross-checks with gateways
 * (spec/manifest.md 7, 5.4).
 */
#include "artifact/names/name.h"
#include "base/alloc.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/judges_internal.h"
#include "manifest/text/suggest.h"
#include "manifest/text/yaml_tree.h"

#include <string.h>

static bool
is_present (const struct yaml_node *n)
{
    return n && n->kind != YAML_NULL;
}

/* --- (8) the block itself --- */

static bool
refuse_moved (struct reading *rd, const struct inference *inf, struct mur_error **err)
{
    const struct {
        const char *path, *moved_to;
        bool is_there;
    } moved[] = {
        { "inference.endpoint", "gateway.endpoint on the driver's entry under artifacts",
          inf->endpoint != NULL },
        { "inference.api_key", "gateway.api_key on the driver's entry under artifacts",
          inf->api_key != NULL },
        { "inference.max_task_reopens", "lifecycle.max_task_reopens",
          is_present (inf->max_task_reopens) },
    };
    for (size_t i = 0; i < ARRAY_LEN (moved); i++)
        if (moved[i].is_there) {
            refuse_value (rd, err, moved[i].path, "this key has moved");
            return mur_hint (err, "use %s", moved[i].moved_to);
        }
    return true;
}

static bool
judge_prompt_sources (struct reading *rd, const struct inference *inf, struct mur_error **err)
{
    int sources = (inf->system_prompt != NULL) + (inf->system_prompt_file != NULL) +
                  (inf->system_prompt_artifact != NULL);
    if (sources < 2)
        return true;
    return refuse_value (
        rd, err, "inference.system_prompt",
        "only one of system_prompt, system_prompt_file and system_prompt_artifact may be given");
}

/* Keys of the http loop that a harness does not know. */
static bool
refuse_http_only (struct reading *rd, const struct inference *inf, struct mur_error **err)
{
    const struct compaction *c = inf->compaction;
    const struct {
        const char *path;
        bool is_there;
    } keys[] = {
        { "inference.max_tokens", inf->max_tokens.is_set },
        { "inference.tool_refresh", inf->written_tool_refresh != NULL },
        { "inference.alternates", inf->alternates.is_set },
        { "inference.retry", inf->retry_is_declared },
        { "inference.compaction.max_tokens", c && c->max_tokens.is_set },
        { "inference.compaction.driver_config", c && is_present (c->driver_config) },
    };
    for (size_t i = 0; i < ARRAY_LEN (keys); i++)
        if (keys[i].is_there)
            return refuse_value (rd, err, keys[i].path,
                                 "it has no meaning under transport: process");
    return true;
}

static bool
require_map (struct reading *rd, const struct yaml_node *n, const char *path,
             struct mur_error **err)
{
    if (! is_present (n) || n->kind == YAML_MAP)
        return true;
    return refuse_value (rd, err, path, "it must be a map, not a %s", yaml_kind_name (n));
}

static bool
judge_driver (struct reading *rd, struct inference *inf, struct mur_error **err)
{
    const char *path = "inference.driver.artifact";
    bool is_process = inf->transport == TRANSPORT_PROCESS;
    if (! inf->driver || ! inf->driver->artifact) {
        refuse_value (rd, err, path, "a driver is required%s",
                      is_process ? "; inference.command no longer selects a harness" : "");
        return mur_hint (err, "name a driver declared under artifacts");
    }
    if (! require_map (rd, inf->driver->config, "inference.driver.config", err))
        return false;
    if (! is_present (inf->driver->config))
        inf->driver->config = NULL;
    return true;
}

static bool
judge_compaction (struct reading *rd, struct compaction *c, struct mur_error **err)
{
    if (! c)
        return true;
    if (c->system_prompt && c->system_prompt_file)
        return refuse_value (rd, err, "inference.compaction.system_prompt_file",
                             "only one of system_prompt and system_prompt_file may be given");
    if (! require_map (rd, c->driver_config, "inference.compaction.driver_config", err))
        return false;
    if (! is_present (c->driver_config))
        c->driver_config = NULL;
    return true;
}

static bool
judge_retry (struct reading *rd, const struct retry_limits *retry, struct mur_error **err)
{
    if (! schema_check (&rd->r, &retry_schema, retry, "inference.retry", err))
        return false;
    if (retry->max_delay_ms.value >= retry->initial_delay_ms.value)
        return true;
    return refuse_value (rd, err, "inference.retry.max_delay_ms",
                         "%llu is below initial_delay_ms %llu",
                         (unsigned long long)retry->max_delay_ms.value,
                         (unsigned long long)retry->initial_delay_ms.value);
}

static bool
alternate_name_is_valid (const char *name)
{
    size_t len = strlen (name);
    if (! len || len > 63 || name[0] < 'a' || name[0] > 'z')
        return false;
    return strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool
judge_alternate (struct reading *rd, size_t i, struct mur_error **err)
{
    struct alternate *a = &rd->m->inference->alternates.items[i];
    const char *path = path_of (rd, "inference.alternates[%zu]", i);
    if (! a->name || ! alternate_name_is_valid (a->name) || strcmp (a->name, "primary") == 0)
        return refuse_value (rd, err, path_of (rd, "%s.name", path),
                             "a name of a-z, 0-9 and '-', beginning with a letter, at most 63 long "
                             "and not 'primary' is required");
    if (! a->model)
        return refuse_value (rd, err, path_of (rd, "%s.model", path), "a model is required");
    if (! a->driver || ! a->driver->artifact)
        return refuse_value (rd, err, path_of (rd, "%s.driver.artifact", path),
                             "a driver is required");
    if (is_present (a->driver->config))
        return refuse_value (rd, err, path_of (rd, "%s.driver.config", path),
                             "an alternate has no driver config of its own");
    a->driver->config = NULL;
    return true;
}

static bool
judge_alternates (struct reading *rd, struct mur_error **err)
{
    struct inference *inf = rd->m->inference;
    size_t len = inf->alternates.len;
    struct arena *a = rd->r.arena;
    const char **names = arena_new_array (a, const char *, len + 1);
    const char **pairs = arena_new_array (a, const char *, len + 1);
    pairs[0] = arena_printf (a, "%s\n%s", inf->driver->artifact, inf->model);
    for (size_t i = 0; i < len; i++) {
        if (! judge_alternate (rd, i, err))
            return false;
        const struct alternate *alt = &inf->alternates.items[i];
        names[i] = alt->name;
        pairs[i + 1] = arena_printf (a, "%s\n%s", alt->driver->artifact, alt->model);
    }
    size_t twice = find_repeat (names, len);
    if (twice < len)
        return refuse_value (rd, err, path_of (rd, "inference.alternates[%zu].name", twice),
                             "'%s' stands twice", names[twice]);
    twice = find_repeat (pairs, len + 1);
    if (twice <= len)
        return refuse_value (rd, err, path_of (rd, "inference.alternates[%zu]", twice - 1),
                             "another choice has the same driver and model");
    return true;
}

bool
judge_inference (struct reading *rd, struct mur_error **err)
{
    struct inference *inf = rd->m->inference;
    if (! inf)
        return true;
    if (! refuse_moved (rd, inf, err) ||
        ! schema_check (&rd->r, &inference_schema, inf, "inference", err))
        return false;
    inf->transport =
        str_eq (inf->written_transport, "process") ? TRANSPORT_PROCESS : TRANSPORT_HTTP;
    inf->tool_refresh = str_eq (inf->written_tool_refresh, "immediate") ? TOOL_REFRESH_IMMEDIATE
                                                                        : TOOL_REFRESH_COMPACTION;
    if (inf->transport == TRANSPORT_PROCESS && ! refuse_http_only (rd, inf, err))
        return false;
    if (inf->transport == TRANSPORT_HTTP && ! inf->model) {
        refuse_value (rd, err, "inference.model", "a model is required");
        return mur_hint (err, "name it as the provider does: model: NAME");
    }
    return judge_prompt_sources (rd, inf, err) && judge_driver (rd, inf, err) &&
           judge_compaction (rd, inf->compaction, err) && judge_retry (rd, inf->retry, err) &&
           judge_alternates (rd, err);
}

/* --- (10) to (13): what the block names --- */

/* Refuses a name no entry has, offering the one entry that differs only in scope. */
static bool
refuse_undeclared (struct reading *rd, const char *path, const char *name, struct mur_error **err)
{
    refuse_value (rd, err, path, "'%s' is not declared under artifacts", name);
    const struct artifact_entry *near = NULL, *spelled = NULL;
    size_t matches = 0, nearest = strlen (name_bare (name)) / 3 + 1;
    for (size_t i = 0; i < rd->m->artifacts.len; i++) {
        const struct artifact_entry *e = &rd->m->artifacts.items[i];
        size_t apart = schema_distance (e->tool_name, name_bare (name));
        if (apart < nearest) {
            nearest = apart;
            spelled = e;
        }
        if (strcmp (e->tool_name, name_bare (name)) == 0) {
            near = e;
            matches++;
        }
    }
    if (matches == 1)
        return mur_hint (err, "declared is %s", near->name);
    if (! matches && spelled)
        return mur_hint (err, "did you mean %s, which is declared?", spelled->name);
    return mur_hint (err, "add an entry named %s under artifacts", name);
}

static size_t
index_of (const struct reading *rd, const struct artifact_entry *e)
{
    return (size_t)(e - rd->m->artifacts.items);
}

/* Whether an entry's driver must say where its provider is. A bundled driver may answer without
 * one; resolving decides. */
static bool
requires_gateway (const struct artifact_entry *e)
{
    return ! e->gateway && ! name_has_scope (e->name, SCOPE_BUNDLED);
}

static bool
refuse_missing_gateway (struct reading *rd, const struct artifact_entry *e, const char *named_by,
                        struct mur_error **err)
{
    refuse_value (rd, err, path_of (rd, "artifacts[%zu].gateway", index_of (rd, e)),
                  "%s is named by %s and needs a gateway: the provider's address and key", e->name,
                  named_by);
    return mur_hint (err, "add gateway: {endpoint: \"https://...\", api_key: \"${NAME}\"}");
}

static struct text_set
alternates_drivers (struct reading *rd)
{
    const struct inference *inf = rd->m->inference;
    size_t len = inf ? inf->alternates.len : 0;
    const char **names = arena_new_array (rd->r.arena, const char *, len + 1);
    for (size_t i = 0; i < len; i++)
        names[i] = inf->alternates.items[i].driver->artifact;
    return text_set_of (rd, names, len);
}

bool
judge_driver_gateways (struct reading *rd, struct mur_error **err)
{
    struct inference *inf = rd->m->inference;
    bool is_http = inf && inf->transport == TRANSPORT_HTTP;
    if (inf) {
        inf->driver_entry = capsule_manifest_artifact (rd->m, inf->driver->artifact);
        if (! inf->driver_entry)
            return refuse_undeclared (rd, "inference.driver.artifact", inf->driver->artifact, err);
        if (is_http && requires_gateway (inf->driver_entry))
            return refuse_missing_gateway (rd, inf->driver_entry, "inference.driver.artifact", err);
    }
    struct text_set alternates = alternates_drivers (rd);
    for (size_t i = 0; i < rd->m->artifacts.len; i++) {
        const struct artifact_entry *e = &rd->m->artifacts.items[i];
        if (e->role != ROLE_DRIVER || ! e->gateway)
            continue;
        bool is_named = inf && (e == inf->driver_entry || text_set_has (&alternates, e->name));
        if (! is_named)
            return refuse_value (rd, err, path_of (rd, "artifacts[%zu].gateway", i),
                                 "no part of inference names this driver");
    }
    return true;
}

bool
judge_alternate_drivers (struct reading *rd, struct mur_error **err)
{
    struct inference *inf = rd->m->inference;
    for (size_t i = 0; inf && i < inf->alternates.len; i++) {
        struct alternate *a = &inf->alternates.items[i];
        const char *path = path_of (rd, "inference.alternates[%zu].driver.artifact", i);
        a->entry = capsule_manifest_artifact (rd->m, a->driver->artifact);
        if (! a->entry)
            return refuse_undeclared (rd, path, a->driver->artifact, err);
        if (a->entry->role != ROLE_DRIVER)
            return refuse_value (rd, err, path, "'%s' is declared as runtime: %s, not driver",
                                 a->entry->name, artifact_role_name (a->entry->role));
        if (a->entry != inf->driver_entry && requires_gateway (a->entry))
            return refuse_missing_gateway (rd, a->entry, path, err);
    }
    return true;
}

/* A driver has to know what a gateway is: the bundled ones do, and whoever puts the harness inside
 * says so of theirs. */
static bool
takes_gateway (const struct inference *inf, const struct artifact_entry *e)
{
    return inf->written_containment || name_has_scope (e->name, SCOPE_BUNDLED);
}

bool
judge_process_driver (struct reading *rd, struct mur_error **err)
{
    const struct inference *inf = rd->m->inference;
    if (inf && inf->written_containment && inf->transport != TRANSPORT_PROCESS)
        return refuse_value (rd, err, "inference.containment",
                             "it is a harness's, and only transport: process has one");
    if (! inf || inf->transport != TRANSPORT_PROCESS)
        return true;
    const struct artifact_entry *e = inf->driver_entry;
    if (e->role != ROLE_DRIVER)
        return refuse_value (rd, err, "inference.driver.artifact",
                             "'%s' is declared as runtime: %s, not driver", e->name,
                             artifact_role_name (e->role));
    const struct {
        const char *key;
        bool is_there;
    } keys[] = {
        { "capabilities", e->capabilities != NULL },
        { "config", e->config != NULL },
        { "gateway", e->gateway && ! takes_gateway (inf, e) },
    };
    for (size_t i = 0; i < ARRAY_LEN (keys); i++)
        if (keys[i].is_there)
            return refuse_value (rd, err,
                                 path_of (rd, "artifacts[%zu].%s", index_of (rd, e), keys[i].key),
                                 "a process driver is granted nothing and takes none");
    return true;
}

bool
judge_prompt_artifact (struct reading *rd, struct mur_error **err)
{
    struct inference *inf = rd->m->inference;
    if (! inf || ! inf->system_prompt_artifact)
        return true;
    const char *path = "inference.system_prompt_artifact";
    inf->prompt_entry = capsule_manifest_artifact (rd->m, inf->system_prompt_artifact);
    if (! inf->prompt_entry)
        return refuse_undeclared (rd, path, inf->system_prompt_artifact, err);
    if (inf->prompt_entry->may_be_prompt)
        return true;
    refuse_value (rd, err, path, "'%s' does not carry a prompt: it is declared as runtime: %s",
                  inf->system_prompt_artifact, artifact_role_name (inf->prompt_entry->role));
    return mur_hint (err, "set prompt_payload: true on its entry if its text is meant");
}

/* --- (21) --- */

bool
judge_alternates_selectable (struct reading *rd, struct mur_error **err)
{
    const struct inference *inf = rd->m->inference;
    const struct control *control = rd->m->control;
    if (! inf || ! inf->alternates.len)
        return true;
    if (control && (str_list_has (&control->settings, "inference.driver") ||
                    str_list_has (&control->agent_settings, "inference.driver")))
        return true;
    refuse_value (rd, err, "inference.alternates", "nobody could select one of them");
    return mur_hint (err, "list inference.driver in control.settings or control.agent_settings");
}
