/* SPDX-License-Identifier: Apache-2.0
 *
 * Script capsule: runs its task as a probe (../probe.h) and leaves the outcome in out/result.txt,
 * after each line.
 *
 * - invoke TOOL JSON, send URL TEXT
 * - artifacts, describe NAME, search TEXT, pull NAME VERSION, drop NAME, diagnostics
 */
#include "probe.h"

#include "guest.h"

static guest_string_t
borrow (const char *text)
{
    return (guest_string_t){ (uint8_t *)(uintptr_t)text, strlen (text) };
}

static void
add_string (struct mur_text *out, const char *before, const guest_string_t *string)
{
    mur_text_puts (out, before);
    mur_text_add (out, (const char *)string->ptr, string->len);
}

static void
add_error (struct mur_text *out, const char *word, const guest_string_t *why)
{
    mur_text_puts (out, word);
    add_string (out, ": error: ", why);
    mur_text_puts (out, "\n");
}

static void
invoke (struct mur_text *out, char *rest)
{
    static const char *const names[] = { "passed", "failed", "error" };
    char *json = probe_split (rest);
    struct mur_result result;
    char *refusal = NULL;
    if (! mur_invoke (rest, json, &result, &refusal)) {
        mur_text_printf (out, "invoke: error: %s\n", refusal);
        return;
    }
    const char *text = result.data != NULL ? result.data : result.summary;
    mur_text_printf (out, "invoke: %s %s\n", names[result.status], text != NULL ? text : "");
    for (size_t i = 0; i < result.metadata_count; i++)
        mur_text_printf (out, "metadata: %s=%s\n", result.metadata[i].key,
                         result.metadata[i].value);
}

static void
add_summary (struct mur_text *out, const murmur_artifact_manager_manage_artifact_summary_t *summary)
{
    add_string (out, "", &summary->name);
    add_string (out, "@", &summary->version);
    mur_text_puts (out, summary->runtime == 0 ? " wasm\n" : " native\n");
}

static void
artifacts (struct mur_text *out, char *rest)
{
    murmur_artifact_manager_manage_list_artifact_summary_t list;
    (void)rest;
    murmur_artifact_manager_manage_list (&list);
    for (size_t i = 0; i < list.len; i++)
        add_summary (out, &list.ptr[i]);
}

static void
describe (struct mur_text *out, char *rest)
{
    guest_string_t name = borrow (rest), why;
    murmur_artifact_manager_manage_artifact_info_t info;
    if (! murmur_artifact_manager_manage_describe (&name, &info, &why)) {
        add_error (out, "describe", &why);
        return;
    }
    add_string (out, "name ", &info.name);
    add_string (out, "\nversion ", &info.version);
    add_string (out, "\ndescription ", &info.description);
    mur_text_puts (out, "\ntags");
    for (size_t i = 0; i < info.tags.len; i++)
        add_string (out, " ", &info.tags.ptr[i]);
    if (info.input_schema.is_some)
        add_string (out, "\ninput_schema ", &info.input_schema.val);
    if (info.output_schema.is_some)
        add_string (out, "\noutput_schema ", &info.output_schema.val);
    mur_text_puts (out, "\n");
}

static void
search (struct mur_text *out, char *rest)
{
    guest_string_t query = borrow (rest), why;
    murmur_artifact_manager_manage_list_artifact_summary_t list;
    if (! murmur_artifact_manager_manage_search (&query, &list, &why)) {
        add_error (out, "search", &why);
        return;
    }
    for (size_t i = 0; i < list.len; i++)
        add_summary (out, &list.ptr[i]);
}

static void
pull (struct mur_text *out, char *rest)
{
    guest_string_t version = borrow (probe_split (rest)), name = borrow (rest), why;
    murmur_artifact_manager_manage_artifact_summary_t summary;
    if (murmur_artifact_manager_manage_pull (&name, &version, &summary, &why))
        add_summary (out, &summary);
    else
        add_error (out, "pull", &why);
}

static void
drop (struct mur_text *out, char *rest)
{
    guest_string_t name = borrow (rest), why;
    bool is_removed;
    if (murmur_artifact_manager_manage_remove (&name, &is_removed, &why))
        mur_text_printf (out, "drop: %s\n", is_removed ? "true" : "false");
    else
        add_error (out, "drop", &why);
}

static void
diagnostics (struct mur_text *out, char *rest)
{
    murmur_artifact_manager_manage_runtime_state_t state;
    guest_string_t why;
    (void)rest;
    if (! murmur_artifact_manager_manage_diagnostics (&state, &why)) {
        add_error (out, "diagnostics", &why);
        return;
    }
    add_string (out, "capsule-id ", &state.capsule_id);
    add_string (out, "\ncapabilities ", &state.capabilities);
    mur_text_puts (out, "\n");
    for (size_t i = 0; i < state.installed.len; i++)
        add_summary (out, &state.installed.ptr[i]);
}

static void
send_message (struct mur_text *out, char *rest)
{
    char *text = probe_split (rest);
    guest_string_t url = borrow (rest), why;
    murmur_message_send_message_t message = { .message_id = borrow ("msg_probe"),
                                              .text = borrow (text) };
    murmur_message_send_task_result_t result;
    if (! murmur_message_send_send (&url, &message, &result, &why)) {
        add_error (out, "send", &why);
        return;
    }
    add_string (out, "send: ", &result.state);
    add_string (out, " ", &result.task_id);
    add_string (out, " ", &result.context_id);
    mur_text_puts (out, "\n");
}

static const struct probe_word words[] = {
    { "invoke", invoke },           { "artifacts", artifacts }, { "describe", describe },
    { "search", search },           { "pull", pull },           { "drop", drop },
    { "diagnostics", diagnostics }, { "send", send_message },   { NULL, NULL },
};

void
mur_capsule (void)
{
    struct mur_text out = { 0 };
    char *task = mur_file_read ("murmur-runtime/task.md", PROBE_FILE_LIMIT, NULL, NULL);
    for (char *line = task, *next; line != NULL; line = next) {
        next = strchr (line, '\n');
        if (next != NULL)
            *next++ = '\0';
        probe_run (&out, line, words);
        mur_file_write ("out/result.txt", out.data != NULL ? out.data : "", out.len, true, NULL);
    }
}
