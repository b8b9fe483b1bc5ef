/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tool.h"
#include "engine/guest.h"

#include "base/alloc.h"

#include <string.h>

const char host_tool_interface[] = "murmur:tool/run@0.1.0";

static const char *const status_names[] = {
    [TOOL_PASSED] = "passed",
    [TOOL_FAILED] = "failed",
    [TOOL_ERROR] = "error",
};

/* "passed", "failed", "error". */
static const char *
tool_status_name (enum tool_status status)
{
    return status_names[status];
}

const char *
tool_metadata_get (const struct tool_result *r, const char *key)
{
    for (size_t i = 0; i < r->metadata_count; i++)
        if (strcmp (r->metadata[i].key, key) == 0)
            return r->metadata[i].value;
    return NULL;
}

static struct value
optional_text (struct arena *a, const char *text, size_t len)
{
    return text ? value_some (a, value_string_n (a, text, len)) : value_none ();
}

static bool
status_from_value (const struct value *v, enum tool_status *status)
{
    if (! v || v->kind != VALUE_ENUM)
        return false;
    for (size_t i = 0; i < ARRAY_LEN (status_names); i++)
        if (strcmp (v->variant.name, status_names[i]) == 0) {
            *status = (enum tool_status)i;
            return true;
        }
    return false;
}

/* The types were checked when the call was made: here only the shapes we rely on are asserted. */
static bool
result_from_value (const struct value *v, struct arena *arena, struct tool_result *out)
{
    const struct value *truncated = value_field (v, "truncated");
    const struct value *metadata = value_field (v, "metadata");
    *out = (struct tool_result){ 0 };
    if (! status_from_value (value_field (v, "status"), &out->status) || ! truncated || ! metadata)
        return false;
    out->summary = value_text (value_field (v, "summary"), &out->summary_len);
    out->data = value_text (value_field (v, "data"), &out->data_len);
    out->data_path = value_text (value_field (v, "data-path"), NULL);
    out->is_truncated = truncated->boolean;
    struct tool_metadata *pairs = arena_new_array (arena, struct tool_metadata, metadata->list.len);
    for (size_t i = 0; i < metadata->list.len; i++) {
        const struct value *pair = &metadata->list.items[i];
        if (pair->kind != VALUE_TUPLE || pair->list.len != 2)
            return false;
        pairs[i].key = value_text (&pair->list.items[0], NULL);
        pairs[i].value = value_text (&pair->list.items[1], NULL);
        if (! pairs[i].key || ! pairs[i].value)
            return false;
    }
    out->metadata = pairs;
    out->metadata_count = metadata->list.len;
    return true;
}

struct value
tool_result_to_value (struct arena *arena, const struct tool_result *r)
{
    struct value *pairs = arena_new_array (arena, struct value, r->metadata_count);
    for (size_t i = 0; i < r->metadata_count; i++) {
        struct value pair[] = {
            value_string (arena, r->metadata[i].key),
            value_string (arena, r->metadata[i].value),
        };
        pairs[i] = value_tuple (arena, pair, ARRAY_LEN (pair));
    }
    struct value_field fields[] = {
        { "status", value_enum (tool_status_name (r->status)) },
        { "summary", optional_text (arena, r->summary, r->summary_len) },
        { "data", optional_text (arena, r->data, r->data_len) },
        { "data-path", value_option_string (arena, r->data_path) },
        { "truncated", value_bool (r->is_truncated) },
        { "metadata", value_list (arena, pairs, r->metadata_count) },
    };
    return value_record (arena, fields, ARRAY_LEN (fields));
}

enum guest_ending
host_tool_run (struct guest *g, const char *data, size_t len, const char *log_path,
               struct arena *arena, struct tool_result *out, struct cancel *cancel,
               struct mur_error **err)
{
    struct value_field fields[] = {
        { "data", optional_text (arena, data, len) },
        { "log-path", value_option_string (arena, log_path) },
    };
    struct value input = value_record (arena, fields, ARRAY_LEN (fields));
    struct value result;
    enum guest_ending ending =
        guest_call (g, host_tool_interface, "run", &input, 1, arena, &result, cancel, err);
    if (ending == GUEST_TRAPPED)
        *out = (struct tool_result){ .summary = guest_last_words (g, arena) };
    if (ending == GUEST_MISSING_EXPORT)
        mur_hint (err, "rebuild it so that it exports %s", host_tool_interface);
    if (ending == GUEST_OK && ! result_from_value (&result, arena, out)) {
        mur_fail (err, E_RUN_001, "%s#run returned another shape than a tool-result",
                  host_tool_interface);
        return GUEST_TRAPPED;
    }
    return ending;
}
