/* SPDX-License-Identifier: Apache-2.0
 *
 * The role of a process driver over the generated bindings (murmur_process.h says what each
 * function does).
 *
 * The exports are weak: a driver written on the bare bindings links beside this file. Always true:
 * what a line told goes to the runtime with that line's call and is freed after it.
 */
#include "murmur_process.h"
#include "murmur_internal.h"

#if defined(MUR_ROLE_PROCESS_DRIVER)

#include "guest.h"

typedef exports_murmur_driver_process_event_t event_t;

/* --- Strings across the boundary --- */

static guest_string_t
own_bytes (const char *text, size_t len)
{
    return (guest_string_t){ (uint8_t *)copy_bytes (text, len), len };
}

static guest_string_t
own (const char *text)
{
    return own_bytes (text != NULL ? text : "", text != NULL ? strlen (text) : 0);
}

static guest_option_string_t
own_option (const char *text)
{
    return (guest_option_string_t){ text != NULL,
                                    text != NULL ? own (text) : (guest_string_t){ 0 } };
}

static guest_list_string_t
own_list (const char *const *items)
{
    guest_list_string_t list = { 0 };
    while (items != NULL && items[list.len] != NULL)
        list.len++;
    list.ptr = must (calloc (list.len + 1, sizeof *list.ptr));
    for (size_t i = 0; i < list.len; i++)
        list.ptr[i] = own (items[i]);
    return list;
}

static char *
text_of (const guest_string_t *from)
{
    return copy_text ((const char *)from->ptr, from->len);
}

static char *
text_of_option (const guest_option_string_t *from)
{
    return from->is_some ? text_of (&from->val) : NULL;
}

/* Room for one more at the end of a list that grows by one. */
#define GROW(list)                                                                                 \
    (&((list)->ptr =                                                                               \
           must (realloc ((list)->ptr, ((list)->len + 1) * sizeof *(list)->ptr)))[(list)->len++])

/* --- Describe --- */

__attribute__ ((weak)) void
mur_process_describe (struct mur_harness *harness)
{
    (void)harness;
}

__attribute__ ((weak)) void
exports_murmur_driver_process_describe (exports_murmur_driver_process_description_t *ret)
{
    struct mur_harness harness = { 0 };
    mur_process_describe (&harness);
    *ret = (exports_murmur_driver_process_description_t){
        .harness = own (harness.harness),
        .binary = own (harness.binary),
        .version_args = own_list (harness.version_args),
        .tested_versions = own_list (harness.tested_versions),
        .interrupt = (uint8_t)harness.interrupt,
        .required_env = own_list (harness.required_env),
        .streams_text = harness.streams_text,
        .reports_usage = harness.reports_usage,
    };
}

/* --- Launch --- */

struct mur_plan {
    exports_murmur_driver_process_launch_plan_t to;
    char *refusal;
};

void
mur_plan_arg (struct mur_plan *plan, const char *arg)
{
    *GROW (&plan->to.args) = own (arg);
}

void
mur_plan_env (struct mur_plan *plan, const char *name, const char *value)
{
    *GROW (&plan->to.env_set) = (guest_tuple2_string_string_t){ own (name), own (value) };
}

void
mur_plan_file (struct mur_plan *plan, const char *name, const char *contents, size_t len)
{
    *GROW (&plan->to.files) =
        (exports_murmur_driver_process_driver_file_t){ own (name), own_bytes (contents, len) };
}

static void
set_bytes (guest_option_list_u8_t *to, const char *bytes, size_t len)
{
    guest_option_list_u8_free (to);
    *to = (guest_option_list_u8_t){ true, { (uint8_t *)copy_bytes (bytes, len), len } };
}

void
mur_plan_stdin (struct mur_plan *plan, const char *bytes, size_t len, bool stays_open)
{
    if (bytes != NULL)
        set_bytes (&plan->to.stdin_, bytes, len);
    plan->to.keep_stdin_open = stays_open;
}

void
mur_plan_interrupt (struct mur_plan *plan, const char *bytes, size_t len)
{
    set_bytes (&plan->to.interrupt_stdin, bytes, len);
}

void
mur_plan_refuse (struct mur_plan *plan, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    free (plan->refusal);
    plan->refusal = text.data;
}

__attribute__ ((weak)) void
mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan)
{
    (void)launch;
    mur_plan_refuse (plan, "this driver starts nothing");
}

static const char **
texts_of (const guest_list_string_t *list)
{
    const char **texts = must (calloc (list->len + 1, sizeof *texts));
    for (size_t i = 0; i < list->len; i++)
        texts[i] = text_of (&list->ptr[i]);
    return texts;
}

/* What is copied here lives as long as the run, as the instance does: there is one launch. */
__attribute__ ((weak)) bool
exports_murmur_driver_process_launch (exports_murmur_driver_process_launch_request_t *request,
                                      exports_murmur_driver_process_launch_plan_t *ret,
                                      guest_string_t *err)
{
    const exports_murmur_driver_process_bridge_t *served = &request->bridge.val;
    char *config = text_of_option (&request->config);
    struct mur_bridge bridge = { 0 };
    if (request->bridge.is_some)
        bridge =
            (struct mur_bridge){ text_of (&served->server_name), text_of (&served->url),
                                 text_of (&served->bearer_token), texts_of (&served->tool_names) };
    struct mur_launch launch = {
        .model = text_of_option (&request->model),
        .system_prompt = text_of (&request->system_prompt),
        .config = config != NULL ? mur_json_parse (config, strlen (config)) : NULL,
        .bridge = request->bridge.is_some ? &bridge : NULL,
        .session_id = text_of (&request->session.id),
        .is_resumed = request->session.mode == EXPORTS_MURMUR_DRIVER_PROCESS_SESSION_MODE_RESUME,
        .harness_version = text_of_option (&request->harness_version),
        .task = text_of (&request->task),
    };
    struct mur_plan plan = { 0 };
    mur_process_launch (&launch, &plan);
    if (plan.refusal != NULL)
        return *err = own (plan.refusal), false;
    *ret = plan.to;
    return true;
}

/* --- Events --- */

/* What the current line, or the exit, has told so far. */
static exports_murmur_driver_process_list_event_t told;

static event_t *
tell (uint8_t tag)
{
    event_t *event = GROW (&told);
    *event = (event_t){ .tag = tag };
    return event;
}

void
mur_event_session (const char *id, const char *auth, const char *model)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_SESSION_STARTED)->val.session_started =
        (exports_murmur_driver_process_session_info_t){ own (id), own (auth), own_option (model) };
}

void
mur_event_text_delta (const char *text)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TEXT_DELTA)->val.text_delta = own (text);
}

void
mur_event_text (const char *text)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TEXT)->val.text = own (text);
}

void
mur_event_thinking_delta (const char *text)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_THINKING_DELTA)->val.thinking_delta = own (text);
}

void
mur_event_thinking (const char *text)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_THINKING)->val.thinking = own (text);
}

void
mur_event_call_started (const char *id, const char *name)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL_STARTED)->val.tool_call_started =
        (exports_murmur_driver_process_tool_call_start_t){ own (id), own (name) };
}

void
mur_event_call_bytes (const char *id, uint64_t total_bytes)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL_PROGRESS)->val.tool_call_progress =
        (exports_murmur_driver_process_tool_call_progress_t){ own (id), total_bytes };
}

void
mur_event_call (const char *id, const char *name, const char *input)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL)->val.tool_call =
        (exports_murmur_driver_process_tool_call_info_t){ own (id), own (name), own (input) };
}

void
mur_event_result (const char *id, const char *output, bool is_error)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_RESULT)->val.tool_result =
        (exports_murmur_driver_process_tool_result_info_t){ own (id), own (output), is_error };
}

void
mur_event_retry (uint32_t attempt, const char *reason)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_RETRY)->val.retry =
        (exports_murmur_driver_process_retry_info_t){ attempt, own (reason) };
}

static guest_option_u64_t
count_of (int64_t number)
{
    return (guest_option_u64_t){ number >= 0, number >= 0 ? (uint64_t)number : 0 };
}

void
mur_event_usage (const struct mur_process_usage *usage)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_USAGE)->val.usage =
        (exports_murmur_driver_process_usage_t){ count_of (usage->input), count_of (usage->output),
                                                 count_of (usage->cache_read),
                                                 count_of (usage->cache_creation),
                                                 count_of (usage->thinking) };
}

void
mur_event_note (const char *text)
{
    while (*text == '\2' || *text == '\3' || *text == '\4')
        text++;
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_NOTE)->val.note = own (text);
}

static void
tell_input (char mark, const char *bytes, size_t len)
{
    struct mur_text text = { 0 };
    mur_text_add (&text, &mark, 1);
    mur_text_add (&text, bytes, len);
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_NOTE)->val.note = own_bytes (text.data, text.len);
    mur_text_free (&text);
}

void
mur_event_reply (const char *bytes, size_t len)
{
    tell_input ('\2', bytes, len);
}

void
mur_event_interrupt (const char *bytes, size_t len)
{
    tell_input ('\3', bytes, len);
}

/* --- Asking a person --- */

static void
add_parts (struct mur_text *note, const char *key, const char *const *parts, size_t count)
{
    mur_text_key (note, key);
    mur_text_puts (note, "[");
    for (size_t i = 0; i < count; i++) {
        mur_text_comma (note);
        mur_text_json (note, parts[i]);
    }
    mur_text_puts (note, "]");
}

static void
ask_runtime (struct mur_text *note)
{
    mur_text_puts (note, "}");
    tell_input ('\4', note->data, note->len);
    mur_text_free (note);
}

void
mur_event_permission (const struct mur_permission *permission)
{
    struct mur_text note = { 0 };
    mur_text_puts (&note, "{");
    mur_text_string (&note, "id", permission->id);
    mur_text_string (&note, "tool", permission->tool);
    mur_text_string (&note, "input", permission->input);
    mur_text_string (&note, "command", permission->command);
    mur_text_key (&note, "only_reads");
    mur_text_puts (&note, permission->only_reads ? "true" : "false");
    mur_text_key (&note, "is_asked_anyway");
    mur_text_puts (&note, permission->is_asked_anyway ? "true" : "false");
    add_parts (&note, "allow", &permission->allow, 1);
    add_parts (&note, "refuse", permission->refuse, 2);
    ask_runtime (&note);
}

void
mur_event_questions (const struct mur_question *questions, size_t count, const char *const *answer,
                     const char *const refuse[2])
{
    struct mur_text note = { 0 };
    mur_text_puts (&note, "{\"questions\":[");
    for (size_t i = 0; i < count; i++) {
        const char *const *option = questions[i].options;
        size_t options = 0;
        while (option != NULL && option[options] != NULL)
            options++;
        mur_text_comma (&note);
        mur_text_puts (&note, "{");
        mur_text_string (&note, "text", questions[i].text);
        add_parts (&note, "options", option, options);
        mur_text_puts (&note, "}");
    }
    mur_text_puts (&note, "]");
    add_parts (&note, "answer", answer, count + 1);
    add_parts (&note, "refuse", refuse, 2);
    ask_runtime (&note);
}

/* --- The end of a run --- */

void
mur_event_turn_end (const char *answer)
{
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_END)->val.turn_end = own (answer);
}

void
mur_event_turn_failed (enum mur_turn_failure kind, const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    tell (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_FAILED)->val.turn_failed =
        (exports_murmur_driver_process_turn_failure_t){ (uint8_t)kind, own (text.data) };
    mur_text_free (&text);
}

__attribute__ ((weak)) void
mur_process_line (const char *line, size_t len)
{
    (void)line, (void)len;
}

__attribute__ ((weak)) void
exports_murmur_driver_process_parse (guest_list_string_t *lines,
                                     exports_murmur_driver_process_list_event_t *ret)
{
    told = (exports_murmur_driver_process_list_event_t){ 0 };
    for (size_t i = 0; i < lines->len; i++) {
        char *line = copy_bytes (lines->ptr[i].ptr, lines->ptr[i].len);
        mur_process_line (line, lines->ptr[i].len);
        free (line);
    }
    *ret = told;
    guest_list_string_free (lines);
}

/* --- Exit --- */

__attribute__ ((weak)) void
mur_process_exit (const struct mur_exit *exit)
{
    (void)exit;
}

/* The driver's word counts, but an interrupted run without an end of its own is canceled. */
static event_t
end_of (const struct mur_exit *exit)
{
    const event_t *end = NULL;
    mur_process_exit (exit);
    for (size_t i = 0; i < told.len; i++)
        if (told.ptr[i].tag == EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_END ||
            told.ptr[i].tag == EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_FAILED)
            end = &told.ptr[i];
    bool is_canceled = exit->is_interrupted && ! exit->saw_terminal;
    if (end != NULL && ! is_canceled)
        return *end;
    const char *tail = exit->stderr_tail;
    if (is_canceled)
        mur_event_turn_failed (MUR_TURN_CANCELED, "interrupted");
    else if (exit->signal != 0)
        mur_event_turn_failed (MUR_TURN_HARNESS_ERROR, "ended by signal %d: %s", exit->signal,
                               tail);
    else
        mur_event_turn_failed (MUR_TURN_HARNESS_ERROR, "exit code %d: %s", exit->code, tail);
    return told.ptr[told.len - 1];
}

__attribute__ ((weak)) void
exports_murmur_driver_process_classify_exit (exports_murmur_driver_process_exit_status_t *exit,
                                             exports_murmur_driver_process_event_t *ret)
{
    told = (exports_murmur_driver_process_list_event_t){ 0 };
    struct mur_exit given = {
        .code = exit->code.is_some ? exit->code.val : -1,
        .signal = exit->signal.is_some ? exit->signal.val : 0,
        .stderr_tail = text_of (&exit->stderr_tail),
        .is_interrupted = exit->interrupted,
        .saw_terminal = exit->saw_terminal,
    };
    *ret = end_of (&given);
}

#endif
