/* SPDX-License-Identifier: Apache-2.0
 *
 * The role of a hook over the generated bindings (murmur_hook.h says what each function does).
 *
 * The exports are weak: a hook written on the bare bindings links beside this file. Always true:
 * what an event was copied into is freed when its function returns, for a session may see very
 * many.
 */
#include "murmur_hook.h"
#include "murmur_internal.h"

#if defined(MUR_ROLE_HOOK)

#include "guest.h"

#define SLICE_BYTES 65536

typedef exports_murmur_hook_lifecycle_hook_output_t output_t;
typedef exports_murmur_hook_lifecycle_message_t message_t;

/* --- What an event was copied into --- */

struct kept {
    void **items;
    size_t count;
};

static void *
keep (struct kept *kept, void *memory)
{
    kept->items = must (realloc (kept->items, (kept->count + 1) * sizeof *kept->items));
    return kept->items[kept->count++] = memory;
}

static void
let_go (struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free (kept->items[i]);
    free (kept->items);
    *kept = (struct kept){ 0 };
}

static const char *
text_of (struct kept *kept, const guest_string_t *from)
{
    return keep (kept, copy_text ((const char *)from->ptr, from->len));
}

static const char *
text_of_option (struct kept *kept, const guest_option_string_t *from)
{
    return from->is_some ? text_of (kept, &from->val) : NULL;
}

static const char *const *
texts_of (struct kept *kept, const guest_list_string_t *from)
{
    const char **texts = keep (kept, must (calloc (from->len + 1, sizeof *texts)));
    for (size_t i = 0; i < from->len; i++)
        texts[i] = text_of (kept, &from->ptr[i]);
    return texts;
}

/* The messages of an event and those of a page are of two types with the same members. */
#define MESSAGE_OF(kept, from)                                                                     \
    ((struct mur_message){                                                                         \
        .role = text_of (kept, &(from)->role),                                                     \
        .content = text_of (kept, &(from)->content),                                               \
        .id = text_of_option (kept, &(from)->id),                                                  \
        .source_id = text_of_option (kept, &(from)->source_id),                                    \
        .inserted_by = ! (from)->inserted_by.is_some ? MUR_INSERTED_NOT                            \
                       : (from)->inserted_by.val ==                                                \
                               EXPORTS_MURMUR_HOOK_LIFECYCLE_CONTEXT_INSERTION_REPLACE_CONTEXT     \
                           ? MUR_INSERTED_BY_REPLACE                                               \
                           : MUR_INSERTED_BY_SEED,                                                 \
    })

/* --- Strings handed out --- */

static guest_string_t
own (const char *text)
{
    size_t len = text != NULL ? strlen (text) : 0;
    return (guest_string_t){ (uint8_t *)copy_bytes (text, len), len };
}

static guest_option_string_t
own_option (const char *text)
{
    guest_option_string_t to = { 0 };
    if (text != NULL)
        to = (guest_option_string_t){ true, own (text) };
    return to;
}

static guest_string_t
borrow (const char *text)
{
    return (guest_string_t){ (uint8_t *)(uintptr_t)text, strlen (text) };
}

static char *
formatted (const char *format, va_list arguments)
{
    struct mur_text text = { 0 };
    mur_text_vprintf (&text, format, arguments);
    return text.data;
}

/* --- Answers --- */

struct mur_hook_output {
    output_t to;
    char *error; /* NULL: none */
};

/* An arm in place of whatever was answered before; lists of the same arm grow. */
static void
begin (struct mur_hook_output *out, uint8_t tag)
{
    if (out->to.tag == tag)
        return;
    exports_murmur_hook_lifecycle_hook_output_free (&out->to);
    out->to = (output_t){ .tag = tag };
}

static void
set_text (struct mur_hook_output *out, uint8_t tag, guest_string_t text)
{
    begin (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_NONE);
    out->to.tag = tag;
    out->to.val.deny = text; /* the arms that hold a text share its place */
}

void
mur_hook_deny (struct mur_hook_output *out, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    char *reason = formatted (format, arguments);
    va_end (arguments);
    set_text (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_DENY, own (reason));
    free (reason);
}

void
mur_hook_reopen (struct mur_hook_output *out, const char *text)
{
    set_text (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_REOPEN_TASK, own (text));
}

void
mur_hook_artifact (struct mur_hook_output *out, const char *text)
{
    set_text (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_ARTIFACT, own (text));
}

static void
add_message (exports_murmur_hook_lifecycle_list_message_t *list, const struct mur_message *from)
{
    list->ptr = must (realloc (list->ptr, (list->len + 1) * sizeof *list->ptr));
    list->ptr[list->len++] = (message_t){
        .role = own (from->role),
        .content = own (from->content),
        .id = own_option (from->id),
        .source_id = own_option (from->source_id),
    };
}

void
mur_hook_replace (struct mur_hook_output *out, const struct mur_message *message)
{
    begin (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_REPLACE_CONTEXT);
    add_message (&out->to.val.replace_context, message);
}

void
mur_hook_seed (struct mur_hook_output *out, const struct mur_message *message)
{
    begin (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_SEED_CONTEXT);
    add_message (&out->to.val.seed_context, message);
}

void
mur_hook_manifest (struct mur_hook_output *out, const char *binary, const char *content)
{
    begin (out, EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_WRITE_MANIFESTS);
    exports_murmur_hook_lifecycle_list_tool_manifest_t *list = &out->to.val.write_manifests;
    list->ptr = must (realloc (list->ptr, (list->len + 1) * sizeof *list->ptr));
    list->ptr[list->len++] =
        (exports_murmur_hook_lifecycle_tool_manifest_t){ own (binary), own (content) };
}

void
mur_hook_error (struct mur_hook_output *out, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    free (out->error);
    out->error = formatted (format, arguments);
    va_end (arguments);
}

static bool
hand_over (struct mur_hook_output *out, struct kept *kept, output_t *ret, guest_string_t *err)
{
    let_go (kept);
    if (out->error == NULL) {
        *ret = out->to;
        return true;
    }
    exports_murmur_hook_lifecycle_hook_output_free (&out->to);
    *err = own (out->error);
    free (out->error);
    return false;
}

/* --- Events --- */

#define NOTHING_BY_DEFAULT(function, event_type)                                                   \
    __attribute__ ((weak)) void function (const struct event_type *event,                          \
                                          struct mur_hook_output *out)                             \
    {                                                                                              \
        (void)event, (void)out;                                                                    \
    }

NOTHING_BY_DEFAULT (mur_on_stage, mur_stage_event)
NOTHING_BY_DEFAULT (mur_on_session_start, mur_session_event)
NOTHING_BY_DEFAULT (mur_on_task_start, mur_task_start_event)
NOTHING_BY_DEFAULT (mur_on_inference, mur_inference_event)
NOTHING_BY_DEFAULT (mur_on_tool_call, mur_tool_event)
NOTHING_BY_DEFAULT (mur_on_shell, mur_shell_event)
NOTHING_BY_DEFAULT (mur_on_compaction, mur_compaction_event)
NOTHING_BY_DEFAULT (mur_on_task_end, mur_task_end_event)
NOTHING_BY_DEFAULT (mur_on_session_end, mur_session_end_event)

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_stage (exports_murmur_hook_lifecycle_stage_event_t *from,
                                        output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_stage_event event = { texts_of (&kept, &from->shell_allow) };
    guest_list_string_free (&from->shell_allow);
    mur_on_stage (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_session_start (
    exports_murmur_hook_lifecycle_session_context_t *from, output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_session_event event = {
        .capsule_name = text_of (&kept, &from->capsule_name),
        .capsule_version = text_of (&kept, &from->capsule_version),
        .session_id = text_of (&kept, &from->session_id),
        .model = text_of (&kept, &from->model),
        .capabilities = texts_of (&kept, &from->capabilities),
    };
    exports_murmur_hook_lifecycle_session_context_free (from);
    mur_on_session_start (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_task_start (exports_murmur_hook_lifecycle_task_start_event_t *from,
                                             output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_task_start_event event = {
        .task_id = text_of (&kept, &from->task_id),
        .context_id = text_of (&kept, &from->context_id),
        .source = text_of (&kept, &from->source),
        .input_bytes = from->input_bytes,
        .budget_tokens = from->budget_tokens,
        .context_window = from->context_window,
        .prior_tokens = from->prior_tokens,
    };
    exports_murmur_hook_lifecycle_task_start_event_free (from);
    mur_on_task_start (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_inference (exports_murmur_hook_lifecycle_inference_event_t *from,
                                            output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_inference_event event = {
        .turn = from->turn,
        .input_tokens = from->input_tokens,
        .output_tokens = from->output_tokens,
        .decision = text_of (&kept, &from->decision),
        .tool_name = text_of_option (&kept, &from->tool_name),
        .prompt = text_of_option (&kept, &from->prompt),
        .output = text_of_option (&kept, &from->output),
        .tools = text_of_option (&kept, &from->tools),
    };
    exports_murmur_hook_lifecycle_inference_event_free (from);
    mur_on_inference (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_tool_call (exports_murmur_hook_lifecycle_tool_event_t *from,
                                            output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const exports_murmur_hook_lifecycle_tool_outcome_t *ended = &from->outcome.val;
    struct mur_tool_outcome outcome = { 0 };
    if (from->outcome.is_some)
        outcome = (struct mur_tool_outcome){ ended->output_bytes, ended->duration_ms,
                                             text_of (&kept, &ended->status) };
    const struct mur_tool_event event = {
        .turn = from->turn,
        .tool_name = text_of (&kept, &from->tool_name),
        .input_bytes = from->input_bytes,
        .input = text_of (&kept, &from->input),
        .outcome = from->outcome.is_some ? &outcome : NULL,
    };
    exports_murmur_hook_lifecycle_tool_event_free (from);
    mur_on_tool_call (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_shell (exports_murmur_hook_lifecycle_shell_event_t *from,
                                        output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const exports_murmur_hook_lifecycle_shell_outcome_t *ended = &from->outcome.val;
    struct mur_shell_outcome outcome = { 0 };
    if (from->outcome.is_some)
        outcome = (struct mur_shell_outcome){ ended->exit_code,
                                              text_of (&kept, &ended->stdout_),
                                              text_of (&kept, &ended->stderr_),
                                              ended->stdout_bytes,
                                              ended->stderr_bytes,
                                              ended->duration_ms };
    const struct mur_shell_event event = {
        .turn = from->turn,
        .binary = text_of (&kept, &from->binary),
        .command = text_of (&kept, &from->command),
        .argv = texts_of (&kept, &from->argv),
        .script = text_of_option (&kept, &from->script),
        .recipe = text_of_option (&kept, &from->recipe),
        .outcome = from->outcome.is_some ? &outcome : NULL,
    };
    exports_murmur_hook_lifecycle_shell_event_free (from);
    mur_on_shell (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_compaction (exports_murmur_hook_lifecycle_compaction_event_t *from,
                                             output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    struct mur_message *messages =
        keep (&kept, must (calloc (from->messages.len + 1, sizeof *messages)));
    for (size_t i = 0; i < from->messages.len; i++)
        messages[i] = MESSAGE_OF (&kept, &from->messages.ptr[i]);
    const struct mur_compaction_event event = {
        .messages = { messages, from->messages.len },
        .session_tokens = from->session_tokens,
        .threshold = from->threshold,
        .model = text_of_option (&kept, &from->model),
        .system_prompt = text_of_option (&kept, &from->system_prompt),
    };
    exports_murmur_hook_lifecycle_compaction_event_free (from);
    mur_on_compaction (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_task_end (exports_murmur_hook_lifecycle_task_end_event_t *from,
                                           output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_task_end_event event = { text_of (&kept, &from->task_id),
                                              text_of (&kept, &from->exit_status) };
    exports_murmur_hook_lifecycle_task_end_event_free (from);
    mur_on_task_end (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

__attribute__ ((weak)) bool
exports_murmur_hook_lifecycle_on_session_end (
    exports_murmur_hook_lifecycle_session_end_event_t *from, output_t *ret, guest_string_t *err)
{
    struct kept kept = { 0 };
    struct mur_hook_output out = { 0 };
    const struct mur_session_end_event event = {
        .total_turns = from->total_turns,
        .total_input_tokens = from->total_input_tokens,
        .total_output_tokens = from->total_output_tokens,
        .total_tool_calls = from->total_tool_calls,
        .total_shell_calls = from->total_shell_calls,
        .duration_ms = from->duration_ms,
        .exit_status = text_of (&kept, &from->exit_status),
    };
    exports_murmur_hook_lifecycle_session_end_event_free (from);
    mur_on_session_end (&event, &out);
    return hand_over (&out, &kept, ret, err);
}

/* --- What a hook may ask for --- */

bool
mur_infer (const struct mur_inference_request *request, struct mur_inference_answer *answer,
           char **error)
{
    size_t count = request->messages.count;
    murmur_runtime_inference_message_t *messages = must (calloc (count + 1, sizeof *messages));
    for (size_t i = 0; i < count; i++) {
        const struct mur_message *from = &request->messages.items[i];
        messages[i].role = borrow (from->role);
        messages[i].content = borrow (from->content);
        if (from->id != NULL)
            messages[i].id = (guest_option_string_t){ true, borrow (from->id) };
    }
    murmur_runtime_inference_inference_request_t to = { .messages = { messages, count } };
    if (request->system_prompt != NULL)
        to.system_prompt = (guest_option_string_t){ true, borrow (request->system_prompt) };
    if (request->model != NULL)
        to.model = (guest_option_string_t){ true, borrow (request->model) };
    murmur_runtime_inference_inference_response_t from;
    guest_string_t why;
    bool is_answered = murmur_runtime_inference_run_inference (&to, &from, &why);
    free (messages);
    if (! is_answered) {
        set_error (error, copy_text ((const char *)why.ptr, why.len));
        guest_string_free (&why);
        return false;
    }
    answer->text = copy_text ((const char *)from.text.ptr, from.text.len);
    answer->model_used = copy_text ((const char *)from.model_used.ptr, from.model_used.len);
    answer->input_tokens = from.input_tokens;
    answer->output_tokens = from.output_tokens;
    murmur_runtime_inference_inference_response_free (&from);
    return true;
}

uint64_t
mur_count_tokens (const char *text)
{
    guest_string_t string = borrow (text);
    return murmur_runtime_tokens_count (&string);
}

static void
set_io_error (char **error, murmur_task_io_read_io_error_t code)
{
    static const char *const words[] = { "not-granted", "no-task", "no-output", "out-of-range" };
    const char *word = code < sizeof words / sizeof *words ? words[code] : "unknown error";
    set_error (error, copy_bytes (word, strlen (word)));
}

/* Both texts are read in slices until one comes back empty. */
static char *
read_slices (bool is_input, bool is_original, char **error)
{
    struct mur_text whole = { 0 };
    murmur_task_io_read_task_input_form_t form = is_original
                                                     ? MURMUR_TASK_IO_READ_TASK_INPUT_FORM_ORIGINAL
                                                     : MURMUR_TASK_IO_READ_TASK_INPUT_FORM_AS_GIVEN;
    uint64_t offset = 0;
    for (;;) {
        guest_string_t slice;
        murmur_task_io_read_io_error_t code;
        bool is_read =
            is_input ? murmur_task_io_read_read_input (form, offset, SLICE_BYTES, &slice, &code)
                     : murmur_task_io_read_read_output (offset, SLICE_BYTES, &slice, &code);
        if (! is_read) {
            mur_text_free (&whole);
            set_io_error (error, code);
            return NULL;
        }
        size_t len = slice.len;
        mur_text_add (&whole, (const char *)slice.ptr, len);
        guest_string_free (&slice);
        offset += len;
        if (len == 0)
            break;
    }
    char *text = copy_text (whole.data, whole.len);
    mur_text_free (&whole);
    return text;
}

char *
mur_task_input (bool is_original, char **error)
{
    return read_slices (true, is_original, error);
}

char *
mur_task_output (char **error)
{
    return read_slices (false, false, error);
}

bool
mur_conversation_read (const char *cursor, uint32_t limit, struct mur_conversation_page *page,
                       char **error)
{
    guest_string_t from_cursor = borrow (cursor != NULL ? cursor : "");
    murmur_conversation_read_message_page_t from;
    guest_string_t why;
    if (! murmur_conversation_read_read_messages (cursor != NULL ? &from_cursor : NULL, limit,
                                                  &from, &why)) {
        set_error (error, copy_text ((const char *)why.ptr, why.len));
        guest_string_free (&why);
        return false;
    }
    struct kept kept = { 0 };
    *page = (struct mur_conversation_page){ .count = from.messages.len, .total = from.total };
    page->items = must (calloc (page->count + 1, sizeof *page->items));
    for (size_t i = 0; i < page->count; i++)
        page->items[i] = MESSAGE_OF (&kept, &from.messages.ptr[i]);
    if (from.next_cursor.is_some)
        page->next_cursor =
            copy_text ((const char *)from.next_cursor.val.ptr, from.next_cursor.val.len);
    free (kept.items); /* the page's strings are the caller's */
    murmur_conversation_read_message_page_free (&from);
    return true;
}

#endif
