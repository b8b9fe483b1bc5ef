/* SPDX-License-Identifier: Apache-2.0 */
#include "host/artifact_manager.h"

static struct value
summary_value (struct arena *arena, const struct artifact_summary *s)
{
    struct value_field fields[] = {
        { "name", value_string (arena, s->name) },
        { "version", value_string (arena, s->version) },
        { "runtime", value_enum (s->is_native ? "native" : "wasm") },
    };
    return value_record (arena, fields, ARRAY_LEN (fields));
}

static struct value
summaries_value (struct arena *arena, const struct artifact_summary *items, size_t count)
{
    struct value *values = arena_new_array (arena, struct value, count);
    for (size_t i = 0; i < count; i++)
        values[i] = summary_value (arena, &items[i]);
    return value_list (arena, values, count);
}

static struct value
info_value (struct arena *arena, const struct artifact_info *info)
{
    struct value *tags = arena_new_array (arena, struct value, info->tag_count);
    for (size_t i = 0; i < info->tag_count; i++)
        tags[i] = value_string (arena, info->tags[i]);
    struct value_field fields[] = {
        { "name", value_string (arena, info->summary.name) },
        { "version", value_string (arena, info->summary.version) },
        { "description", value_string (arena, info->description ? info->description : "") },
        { "tags", value_list (arena, tags, info->tag_count) },
        { "runtime", value_enum (info->summary.is_native ? "native" : "wasm") },
        { "input-schema", value_option_string (arena, info->input_schema) },
        { "output-schema", value_option_string (arena, info->output_schema) },
    };
    return value_record (arena, fields, ARRAY_LEN (fields));
}

static struct value
state_value (struct arena *arena, const struct artifact_state *state)
{
    struct value_field fields[] = {
        { "capsule-id", value_string (arena, state->capsule_id) },
        { "installed", summaries_value (arena, state->installed, state->installed_count) },
        { "capabilities", value_string (arena, state->capabilities) },
    };
    return value_record (arena, fields, ARRAY_LEN (fields));
}

/* result<T, string>, where <ok> is only read when the callback said so. */
static struct value
outcome (struct arena *arena, bool is_ok, struct value ok, const char *refusal)
{
    if (is_ok)
        return value_ok (arena, &ok);
    struct value text = value_string (arena, refusal ? refusal : "refused");
    return value_err (arena, &text);
}

static bool
absent (struct mur_error **err)
{
    return mur_fail (err, E_RUN_001, "no artifact manager here");
}

/* list: func () -> list<artifact-summary> */
static bool
list (void *ctx, struct arena *arena, const struct value *args _unused_, size_t arg_count _unused_,
      struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    const struct artifact_summary *items = NULL;
    size_t count = 0;
    host->list (host->ctx, arena, &items, &count);
    *result = summaries_value (arena, items, count);
    return true;
}

/* describe: func (name: string) -> result<artifact-info, string> */
static bool
describe (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
          struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    struct artifact_info info = { 0 };
    const char *refusal = NULL;
    bool ok = host->describe (host->ctx, value_text (&args[0], NULL), arena, &info, &refusal);
    *result = outcome (arena, ok, ok ? info_value (arena, &info) : value_none (), refusal);
    return true;
}

/* search: func (query: string) -> result<list<artifact-summary>, string> */
static bool
search (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
        struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    const struct artifact_summary *items = NULL;
    size_t count = 0;
    const char *refusal = NULL;
    bool ok =
        host->search (host->ctx, value_text (&args[0], NULL), arena, &items, &count, &refusal);
    *result =
        outcome (arena, ok, ok ? summaries_value (arena, items, count) : value_none (), refusal);
    return true;
}

/* pull: func (name: string, version: string) -> result<artifact-summary, string> */
static bool
pull (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
      struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    struct artifact_summary pulled = { 0 };
    const char *refusal = NULL;
    bool ok = host->pull (host->ctx, value_text (&args[0], NULL), value_text (&args[1], NULL),
                          arena, &pulled, &refusal);
    *result = outcome (arena, ok, ok ? summary_value (arena, &pulled) : value_none (), refusal);
    return true;
}

/* remove: func (name: string) -> result<bool, string> */
static bool
remove_artifact (void *ctx, struct arena *arena, const struct value *args,
                 size_t arg_count _unused_, struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    bool was_removed = false;
    const char *refusal = NULL;
    bool ok = host->remove (host->ctx, value_text (&args[0], NULL), arena, &was_removed, &refusal);
    *result = outcome (arena, ok, value_bool (was_removed), refusal);
    return true;
}

/* diagnostics: func () -> result<runtime-state, string> */
static bool
diagnostics (void *ctx, struct arena *arena, const struct value *args _unused_,
             size_t arg_count _unused_, struct value *result, struct mur_error **err)
{
    const struct artifact_manager_host *host = ctx;
    if (! host)
        return absent (err);
    struct artifact_state state = { 0 };
    const char *refusal = NULL;
    bool ok = host->diagnostics (host->ctx, arena, &state, &refusal);
    *result = outcome (arena, ok, ok ? state_value (arena, &state) : value_none (), refusal);
    return true;
}

static const struct host_function functions[] = {
    { "list", list }, { "describe", describe },      { "search", search },
    { "pull", pull }, { "remove", remove_artifact }, { "diagnostics", diagnostics },
};

const struct host_interface host_artifact_manager = {
    "murmur:artifact-manager/manage@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
