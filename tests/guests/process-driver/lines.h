/* SPDX-License-Identifier: Apache-2.0
 *
 * A process driver for a harness that says each event as a JSON line: {"type": "text", "text":
 * ...}. The drivers of this folder differ in what they describe; each defines the macros below and
 * includes this file once.
 *
 * `config` members: `args` (added), `env` {name: value}, `files` {name: contents}, `stdin` (false:
 * none; else the task), `keep_stdin`, `interrupt` (the bytes of an interrupt), `refuse` (launch
 * answers this error). The request lies in request.json of the files directory.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#include "guest.h"

#ifndef INTERRUPT
#define INTERRUPT EXPORTS_MURMUR_DRIVER_PROCESS_INTERRUPT_METHOD_STDIN_MESSAGE
#endif
#ifndef REPORTS_USAGE
#define REPORTS_USAGE true
#endif

static guest_string_t
own (const char *text, size_t len)
{
    guest_string_t s = { malloc (len + 1), len };
    if (! s.ptr)
        abort ();
    memcpy (s.ptr, text, len);
    s.ptr[len] = '\0';
    return s;
}

static guest_string_t
own_text (const char *text)
{
    return own (text ? text : "", text ? strlen (text) : 0);
}

static guest_list_string_t
own_list (const char *const *items, size_t count)
{
    guest_list_string_t list = { count ? calloc (count, sizeof (guest_string_t)) : NULL, count };
    for (size_t i = 0; i < count; i++)
        list.ptr[i] = own_text (items[i]);
    return list;
}

static char *
zero_terminated (const guest_string_t *s)
{
    char *copy = calloc (1, s->len + 1);
    if (! copy)
        abort ();
    memcpy (copy, s->ptr, s->len);
    return copy;
}

/* --- describe --- */

void
exports_murmur_driver_process_describe (exports_murmur_driver_process_description_t *ret)
{
    static const char *const version_args[] = { "--version" };
    static const char *const tested[] = { "1.2.3" };
    *ret = (exports_murmur_driver_process_description_t){
        .harness = own_text ("lines"),
        .binary = own_text ("lab-harness"),
        .version_args = own_list (version_args, 1),
        .tested_versions = own_list (tested, 1),
        .interrupt = INTERRUPT,
        .streams_text = true,
        .reports_usage = REPORTS_USAGE,
    };
#ifdef REQUIRED_ENV
    static const char *const required[] = { REQUIRED_ENV };
    ret->required_env = own_list (required, sizeof required / sizeof *required);
#endif
}

/* --- launch --- */

static void
add_bytes (struct mur_text *out, const char *key, const guest_string_t *s)
{
    mur_text_key (out, key);
    mur_text_json_bytes (out, (const char *)s->ptr, s->len);
}

static char *
request_text (const exports_murmur_driver_process_launch_request_t *r)
{
    struct mur_text out = { 0 };
    mur_text_puts (&out, "{");
    if (r->model.is_some)
        add_bytes (&out, "model", &r->model.val);
    add_bytes (&out, "system_prompt", &r->system_prompt);
    if (r->config.is_some)
        add_bytes (&out, "config", &r->config.val);
    add_bytes (&out, "session", &r->session.id);
    mur_text_string (&out, "mode", r->session.mode ? "resume" : "new");
    if (r->harness_version.is_some)
        add_bytes (&out, "version", &r->harness_version.val);
    add_bytes (&out, "task", &r->task);
    if (r->bridge.is_some) {
        add_bytes (&out, "server", &r->bridge.val.server_name);
        add_bytes (&out, "url", &r->bridge.val.url);
        add_bytes (&out, "token", &r->bridge.val.bearer_token);
        mur_text_key (&out, "tools");
        mur_text_puts (&out, "[");
        for (size_t i = 0; i < r->bridge.val.tool_names.len; i++) {
            const guest_string_t *name = &r->bridge.val.tool_names.ptr[i];
            mur_text_comma (&out);
            mur_text_json_bytes (&out, (const char *)name->ptr, name->len);
        }
        mur_text_puts (&out, "]");
    }
    mur_text_puts (&out, "}");
    return out.data;
}

static void
take_args (const struct mur_json *config, guest_list_string_t *out)
{
    mur_node args = mur_json_get (config, 0, "args");
    size_t count = mur_json_count (config, args);
    out->ptr = calloc (count + 1, sizeof *out->ptr);
    out->ptr[out->len++] = own_text ("{files_dir}/request.json");
    for (mur_node n = mur_json_first (config, args); n >= 0; n = mur_json_next (config, n))
        out->ptr[out->len++] = own_text (mur_json_text (config, n));
}

static void
take_env (const struct mur_json *config, guest_list_tuple2_string_string_t *out)
{
    mur_node env = mur_json_get (config, 0, "env");
    out->ptr = calloc (mur_json_count (config, env) + 1, sizeof *out->ptr);
    out->ptr[out->len++] =
        (guest_tuple2_string_string_t){ own_text ("HARNESS_FILES"), own_text ("{files_dir}") };
    for (mur_node n = mur_json_first (config, env); n >= 0; n = mur_json_next (config, n))
        out->ptr[out->len++] =
            (guest_tuple2_string_string_t){ own_text (mur_json_key (config, n)),
                                            own_text (mur_json_text (config, n)) };
}

static void
take_files (const struct mur_json *config, char *request,
            exports_murmur_driver_process_list_driver_file_t *out)
{
    mur_node files = mur_json_get (config, 0, "files");
    out->ptr = calloc (mur_json_count (config, files) + 1, sizeof *out->ptr);
    out->ptr[out->len++] = (exports_murmur_driver_process_driver_file_t){ own_text ("request.json"),
                                                                          own_text (request) };
    for (mur_node n = mur_json_first (config, files); n >= 0; n = mur_json_next (config, n))
        out->ptr[out->len++] =
            (exports_murmur_driver_process_driver_file_t){ own_text (mur_json_key (config, n)),
                                                           own_text (mur_json_text (config, n)) };
}

static guest_option_list_u8_t
bytes (const guest_string_t *s)
{
    guest_string_t copy = own ((const char *)s->ptr, s->len);
    return (guest_option_list_u8_t){ true, { copy.ptr, copy.len } };
}

bool
exports_murmur_driver_process_launch (exports_murmur_driver_process_launch_request_t *request,
                                      exports_murmur_driver_process_launch_plan_t *ret,
                                      guest_string_t *err)
{
    char *text = request->config.is_some ? zero_terminated (&request->config.val) : NULL;
    struct mur_json *config = mur_json_parse (text ? text : "{}", text ? strlen (text) : 2);
    char *refusal = mur_json_text (config, mur_json_get (config, 0, "refuse"));
    if (refusal) {
        *err = own_text (refusal);
        return false;
    }
    *ret = (exports_murmur_driver_process_launch_plan_t){ 0 };
    take_args (config, &ret->args);
    take_env (config, &ret->env_set);
    take_files (config, request_text (request), &ret->files);
    if (mur_json_bool (config, mur_json_get (config, 0, "stdin"), true))
        ret->stdin_ = bytes (&request->task);
    ret->keep_stdin_open = mur_json_bool (config, mur_json_get (config, 0, "keep_stdin"), false);
    char *interrupt = mur_json_text (config, mur_json_get (config, 0, "interrupt"));
    if (interrupt) {
        guest_string_t s = { (uint8_t *)interrupt, strlen (interrupt) };
        ret->interrupt_stdin = bytes (&s);
    }
    return true;
}

/* --- parse --- */

static guest_string_t
member (const struct mur_json *line, const char *key)
{
    return own_text (mur_json_text (line, mur_json_get (line, 0, key)));
}

static guest_option_u64_t
number (const struct mur_json *line, const char *key)
{
    mur_node n = mur_json_get (line, 0, key);
    return (guest_option_u64_t){ n >= 0, (uint64_t)mur_json_int (line, n, 0) };
}

static const char *const kinds[] = { "session-started",
                                     "text-delta",
                                     "text",
                                     "thinking-delta",
                                     "thinking",
                                     "tool-call",
                                     "tool-result",
                                     "retry",
                                     "usage",
                                     "turn-end",
                                     "turn-failed",
                                     "note",
                                     "tool-call-started",
                                     "tool-call-progress" };
static const char *const failures[] = { "auth",     "quota",         "max-turns",
                                        "canceled", "harness-error", "other" };

static uint8_t
index_of (const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; word && i < count; i++)
        if (strcmp (words[i], word) == 0)
            return (uint8_t)i;
    return (uint8_t)count;
}

#define COUNT(a) (sizeof (a) / sizeof *(a))

static exports_murmur_driver_process_event_t
failed (uint8_t kind, const char *message)
{
    exports_murmur_driver_process_event_t e = {
        .tag = EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_FAILED
    };
    e.val.turn_failed.kind = kind < COUNT (failures) ? kind : COUNT (failures) - 1;
    e.val.turn_failed.message = own_text (message);
    return e;
}

static exports_murmur_driver_process_event_t
event_of (const guest_string_t *text)
{
    exports_murmur_driver_process_event_t e = { 0 };
    struct mur_json *j = mur_json_parse ((const char *)text->ptr, text->len);
    char *type = mur_json_text (j, mur_json_get (j, 0, "type"));
    if (type && strcmp (type, "trap") == 0)
        abort ();
    e.tag = index_of (kinds, COUNT (kinds), type);
    switch (e.tag) {
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_SESSION_STARTED: {
        char *model = mur_json_text (j, mur_json_get (j, 0, "model"));
        e.val.session_started.id = member (j, "id");
        e.val.session_started.auth = member (j, "auth");
        e.val.session_started.model = (guest_option_string_t){ model != NULL, own_text (model) };
        return e;
    }
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL:
        e.val.tool_call.id = member (j, "id");
        e.val.tool_call.name = member (j, "name");
        e.val.tool_call.input = member (j, "input");
        return e;
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_RESULT:
        e.val.tool_result.id = member (j, "id");
        e.val.tool_result.output = member (j, "output");
        e.val.tool_result.is_error = mur_json_bool (j, mur_json_get (j, 0, "is_error"), false);
        return e;
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_RETRY:
        e.val.retry.attempt = (uint32_t)number (j, "attempt").val;
        e.val.retry.reason = member (j, "reason");
        return e;
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_USAGE:
        e.val.usage = (exports_murmur_driver_process_usage_t){
            number (j, "input"), number (j, "output"), number (j, "cache-read"),
            number (j, "cache-creation"), number (j, "thinking")
        };
        return e;
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_FAILED: {
        char *kind = mur_json_text (j, mur_json_get (j, 0, "kind"));
        return failed (index_of (failures, COUNT (failures), kind),
                       mur_json_text (j, mur_json_get (j, 0, "message")));
    }
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL_STARTED:
        e.val.tool_call_started.id = member (j, "id");
        e.val.tool_call_started.name = member (j, "name");
        return e;
    case EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TOOL_CALL_PROGRESS:
        e.val.tool_call_progress.id = member (j, "id");
        e.val.tool_call_progress.input_bytes = number (j, "bytes").val;
        return e;
    case COUNT (kinds): /* not a line of ours */
        e.tag = EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_NOTE;
        e.val.note = own ((const char *)text->ptr, text->len);
        return e;
    default:
        e.val.text = member (j, "text");
        return e;
    }
}

void
exports_murmur_driver_process_parse (guest_list_string_t *lines,
                                     exports_murmur_driver_process_list_event_t *ret)
{
    ret->ptr = lines->len ? calloc (lines->len, sizeof *ret->ptr) : NULL;
    ret->len = lines->len;
    for (size_t i = 0; i < lines->len; i++)
        ret->ptr[i] = event_of (&lines->ptr[i]);
}

/* --- classify-exit --- */

void
exports_murmur_driver_process_classify_exit (exports_murmur_driver_process_exit_status_t *exit,
                                             exports_murmur_driver_process_event_t *ret)
{
    char *tail = zero_terminated (&exit->stderr_tail);
    if (strncmp (tail, "odd", 3) == 0) {
        *ret = (exports_murmur_driver_process_event_t){
            .tag = EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_NOTE, .val.note = own_text ("odd")
        };
        return;
    }
    if (exit->code.is_some && exit->code.val == 0 && strncmp (tail, "end: ", 5) == 0) {
        *ret = (exports_murmur_driver_process_event_t){
            .tag = EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_END, .val.turn_end = own_text (tail + 5)
        };
        return;
    }
    *ret =
        failed (exit->interrupted ? EXPORTS_MURMUR_DRIVER_PROCESS_FAILURE_KIND_CANCELED
                                  : EXPORTS_MURMUR_DRIVER_PROCESS_FAILURE_KIND_HARNESS_ERROR,
                mur_format ("%s %d; stderr: %s", exit->code.is_some ? "code" : "signal",
                            (int)(exit->code.is_some ? exit->code.val : exit->signal.val), tail));
}
