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

#include "murmur_process.h"

#include "guest.h"

#ifndef INTERRUPT
#define INTERRUPT MUR_INTERRUPT_STDIN
#endif
#ifndef BINARY
#define BINARY "lab-harness"
#endif
#ifndef REPORTS_USAGE
#define REPORTS_USAGE true
#endif

/* --- describe --- */

void
mur_process_describe (struct mur_harness *harness)
{
    static const char *const version_args[] = { "--version", NULL };
    static const char *const tested[] = { "1.2.3", NULL };
    *harness = (struct mur_harness){
        .harness = "lines",
        .binary = BINARY,
        .version_args = version_args,
        .tested_versions = tested,
        .interrupt = INTERRUPT,
        .streams_text = true,
        .reports_usage = REPORTS_USAGE,
    };
#ifdef REQUIRED_ENV
    static const char *const required[] = { REQUIRED_ENV, NULL };
    harness->required_env = required;
#endif
}

/* --- launch --- */

static char *
request_text (const struct mur_launch *launch)
{
    struct mur_text out = { 0 };
    size_t config_len;
    const char *config = mur_json_raw (launch->config, 0, &config_len);
    mur_text_puts (&out, "{");
    mur_text_string (&out, "model", launch->model);
    mur_text_string (&out, "system_prompt", launch->system_prompt);
    if (config) {
        mur_text_key (&out, "config");
        mur_text_json_bytes (&out, config, config_len);
    }
    mur_text_string (&out, "session", launch->session_id);
    mur_text_string (&out, "mode", launch->is_resumed ? "resume" : "new");
    mur_text_string (&out, "version", launch->harness_version);
    mur_text_string (&out, "task", launch->task);
    if (launch->bridge) {
        mur_text_string (&out, "server", launch->bridge->server_name);
        mur_text_string (&out, "url", launch->bridge->url);
        mur_text_string (&out, "token", launch->bridge->bearer_token);
        mur_text_key (&out, "tools");
        mur_text_puts (&out, "[");
        for (const char *const *name = launch->bridge->tool_names; *name; name++) {
            mur_text_comma (&out);
            mur_text_json (&out, *name);
        }
        mur_text_puts (&out, "]");
    }
    mur_text_puts (&out, "}");
    return out.data;
}

/* The head of a loop over the members of a part of the config. */
#define EACH(n, config, key)                                                                       \
    mur_node n = mur_json_first (config, mur_json_get (config, 0, key));                           \
    n >= 0;                                                                                        \
    n = mur_json_next (config, n)

void
mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan)
{
    const struct mur_json *config = launch->config;
    char *refusal = mur_json_text (config, mur_json_get (config, 0, "refuse"));
    char *interrupt = mur_json_text (config, mur_json_get (config, 0, "interrupt"));
    char *request = request_text (launch);
    if (refusal)
        mur_plan_refuse (plan, "%s", refusal);
    mur_plan_arg (plan, "{files_dir}/request.json");
    for (EACH (n, config, "args"))
        mur_plan_arg (plan, mur_json_text (config, n));
    mur_plan_env (plan, "HARNESS_FILES", "{files_dir}");
    for (EACH (n, config, "env"))
        mur_plan_env (plan, mur_json_key (config, n), mur_json_text (config, n));
    mur_plan_file (plan, "request.json", request, strlen (request));
    for (EACH (n, config, "files")) {
        char *contents = mur_json_text (config, n);
        mur_plan_file (plan, mur_json_key (config, n), contents, strlen (contents));
    }
    bool has_stdin = mur_json_bool (config, mur_json_get (config, 0, "stdin"), true);
    mur_plan_stdin (plan, has_stdin ? launch->task : NULL, strlen (launch->task),
                    mur_json_bool (config, mur_json_get (config, 0, "keep_stdin"), false));
    if (interrupt)
        mur_plan_interrupt (plan, interrupt, strlen (interrupt));
}

/* --- parse --- */

static const char *const failures[] = { "auth",     "quota",         "max-turns",
                                        "canceled", "harness-error", "other" };

#define COUNT(a) (sizeof (a) / sizeof *(a))

static enum mur_turn_failure
failure_of (const char *kind)
{
    for (size_t i = 0; kind && i < COUNT (failures); i++)
        if (strcmp (failures[i], kind) == 0)
            return (enum mur_turn_failure)i;
    return MUR_TURN_OTHER;
}

static int64_t
number (const struct mur_json *line, const char *key)
{
    return mur_json_int (line, mur_json_get (line, 0, key), -1);
}

/* The events that hold one text. */
static bool
tell_text (const char *type, const char *text)
{
    static const struct {
        const char *type;
        void (*tell) (const char *text);
    } events[] = {
        { "text-delta", mur_event_text_delta },
        { "text", mur_event_text },
        { "thinking-delta", mur_event_thinking_delta },
        { "thinking", mur_event_thinking },
        { "turn-end", mur_event_turn_end },
        { "note", mur_event_note },
    };
    for (size_t i = 0; i < COUNT (events); i++)
        if (strcmp (events[i].type, type) == 0) {
            events[i].tell (text);
            return true;
        }
    return false;
}

void
mur_process_line (const char *line, size_t len)
{
    struct mur_json *j = mur_json_parse (line, len);
    const char *const keys[] = { "type", "id", "text", "name", "input", "output", "message" };
    char *words[COUNT (keys)];
    for (size_t i = 0; i < COUNT (keys); i++)
        words[i] = mur_json_text (j, mur_json_get (j, 0, keys[i]));
    const char *type = words[0] ? words[0] : "", *id = words[1], *name = words[3];
    if (strcmp (type, "trap") == 0)
        abort ();
    if (tell_text (type, words[2]))
        return;
    if (strcmp (type, "session-started") == 0)
        mur_event_session (id, mur_json_text (j, mur_json_get (j, 0, "auth")),
                           mur_json_text (j, mur_json_get (j, 0, "model")));
    else if (strcmp (type, "tool-call") == 0)
        mur_event_call (id, name, words[4]);
    else if (strcmp (type, "tool-result") == 0)
        mur_event_result (id, words[5], mur_json_bool (j, mur_json_get (j, 0, "is_error"), false));
    else if (strcmp (type, "retry") == 0)
        mur_event_retry ((uint32_t)mur_json_int (j, mur_json_get (j, 0, "attempt"), 0),
                         mur_json_text (j, mur_json_get (j, 0, "reason")));
    else if (strcmp (type, "usage") == 0)
        mur_event_usage (&(struct mur_process_usage){
            number (j, "input"), number (j, "output"), number (j, "cache-read"),
            number (j, "cache-creation"), number (j, "thinking") });
    else if (strcmp (type, "turn-failed") == 0)
        mur_event_turn_failed (failure_of (mur_json_text (j, mur_json_get (j, 0, "kind"))), "%s",
                               words[6] ? words[6] : "");
    else if (strcmp (type, "tool-call-started") == 0)
        mur_event_call_started (id, name);
    else if (strcmp (type, "tool-call-progress") == 0)
        mur_event_call_bytes (id, (uint64_t)number (j, "bytes"));
    else /* not a line of ours */
        mur_event_note (line);
}

/* --- classify-exit --- */

static exports_murmur_driver_process_event_t
event_of (uint8_t tag, char *text)
{
    exports_murmur_driver_process_event_t event = { .tag = tag };
    event.val.note = (guest_string_t){ (uint8_t *)text, strlen (text) };
    return event;
}

/* On the bare bindings: the SDK would not let the odd answer through. */
void
exports_murmur_driver_process_classify_exit (exports_murmur_driver_process_exit_status_t *exit,
                                             exports_murmur_driver_process_event_t *ret)
{
    char *tail = mur_format ("%.*s", (int)exit->stderr_tail.len, (char *)exit->stderr_tail.ptr);
    bool is_end = exit->code.is_some && exit->code.val == 0 && strncmp (tail, "end: ", 5) == 0;
    if (strncmp (tail, "odd", 3) == 0) {
        *ret = event_of (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_NOTE, mur_format ("odd"));
        return;
    }
    if (is_end) {
        *ret = event_of (EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_END, mur_format ("%s", tail + 5));
        return;
    }
    char *why = mur_format ("%s %d; stderr: %s", exit->code.is_some ? "code" : "signal",
                            (int)(exit->code.is_some ? exit->code.val : exit->signal.val), tail);
    *ret = (exports_murmur_driver_process_event_t){
        .tag = EXPORTS_MURMUR_DRIVER_PROCESS_EVENT_TURN_FAILED
    };
    ret->val.turn_failed.kind = exit->interrupted ? MUR_TURN_CANCELED : MUR_TURN_HARNESS_ERROR;
    ret->val.turn_failed.message = (guest_string_t){ (uint8_t *)why, strlen (why) };
}
