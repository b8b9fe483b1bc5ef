/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles of a tool, a driver and a script capsule over the generated bindings `guest.h`, which
 * `wit-bindgen c --rename-world guest` makes for the role (murmur_sdk.h says what each function
 * does).
 */
#include "murmur_internal.h"

#if defined(MUR_ROLE_TOOL) || defined(MUR_ROLE_CAPSULE)

#include "guest.h"

static guest_string_t
borrow (const char *string)
{
    return (guest_string_t){ (uint8_t *)(uintptr_t)string, strlen (string) };
}

#if defined(MUR_ROLE_TOOL)

void
mur_emit (const char *bytes, size_t len)
{
    guest_string_t chunk = { (uint8_t *)(uintptr_t)bytes, len };
    murmur_stream_events_emit_chunk (&chunk);
}

void
mur_emit_thinking (const char *bytes, size_t len)
{
    guest_string_t chunk = { (uint8_t *)(uintptr_t)bytes, len };
    murmur_stream_events_emit_thinking_chunk (&chunk);
}

void
mur_call_started (const char *id, const char *name)
{
    guest_string_t id_string = borrow (id);
    guest_string_t name_string = borrow (name);
    murmur_stream_events_tool_call_started (&id_string, &name_string);
}

void
mur_call_bytes (const char *id, uint64_t total_bytes)
{
    guest_string_t id_string = borrow (id);
    murmur_stream_events_tool_call_input_bytes (&id_string, total_bytes);
}

static guest_option_string_t
give (char *string, size_t len)
{
    return (guest_option_string_t){ string != NULL, { (uint8_t *)string, len } };
}

static void
give_result (struct mur_result *from, exports_murmur_tool_run_tool_result_t *to)
{
    to->status = (exports_murmur_tool_run_status_t)from->status;
    to->summary = give (from->summary, from->summary ? strlen (from->summary) : 0);
    to->data = give (from->data, from->data_len);
    to->data_path = give (from->data_path, from->data_path ? strlen (from->data_path) : 0);
    to->truncated = from->truncated;
    to->metadata.len = from->metadata_count;
    to->metadata.ptr = must (calloc (from->metadata_count + 1, sizeof *to->metadata.ptr));
    for (size_t i = 0; i < from->metadata_count; i++) {
        char *key = from->metadata[i].key;
        char *value = from->metadata[i].value;
        to->metadata.ptr[i].f0 = (guest_string_t){ (uint8_t *)key, strlen (key) };
        to->metadata.ptr[i].f1 = (guest_string_t){ (uint8_t *)value, strlen (value) };
    }
}

void
exports_murmur_tool_run_run (exports_murmur_tool_run_tool_input_t *input,
                             exports_murmur_tool_run_tool_result_t *ret)
{
    struct mur_input in = { .data = "" };
    if (input->data.is_some) {
        in.data = copy_bytes (input->data.val.ptr, input->data.val.len);
        in.data_len = input->data.val.len;
    }
    if (input->log_path.is_some)
        in.log_path = copy_bytes (input->log_path.val.ptr, input->log_path.val.len);
    in.json = mur_json_parse (in.data, in.data_len);
    struct mur_result out = { .status = MUR_PASSED };
    mur_tool (&in, &out);
    give_result (&out, ret);
}

#elif defined(MUR_ROLE_CAPSULE)

void
exports_murmur_capsule_run_run (void)
{
    mur_capsule ();
}

static char *
take_option (const guest_option_string_t *from)
{
    return from->is_some ? copy_bytes (from->val.ptr, from->val.len) : NULL;
}

bool
mur_invoke (const char *tool, const char *json, struct mur_result *out, char **refusal)
{
    guest_string_t name = borrow (tool);
    murmur_tool_registry_invoke_tool_input_t input = { 0 };
    input.data = (guest_option_string_t){ true, borrow (json) };
    murmur_tool_registry_invoke_tool_result_t result;
    guest_string_t why;
    *out = (struct mur_result){ .status = MUR_ERROR };
    if (! murmur_tool_registry_invoke_invoke (&name, &input, &result, &why)) {
        set_error (refusal, copy_bytes (why.ptr, why.len));
        return false;
    }
    out->status = (enum mur_status)result.status;
    out->summary = take_option (&result.summary);
    out->data = take_option (&result.data);
    out->data_len = result.data.is_some ? result.data.val.len : 0;
    out->data_path = take_option (&result.data_path);
    out->truncated = result.truncated;
    for (size_t i = 0; i < result.metadata.len && i < MUR_MAX_METADATA; i++) {
        guest_string_t *pair[2] = { &result.metadata.ptr[i].f0, &result.metadata.ptr[i].f1 };
        out->metadata[i].key = copy_bytes (pair[0]->ptr, pair[0]->len);
        out->metadata[i].value = copy_bytes (pair[1]->ptr, pair[1]->len);
        out->metadata_count++;
    }
    return true;
}

#endif

#endif
