/* SPDX-License-Identifier: Apache-2.0
 *
 * std/driver-scripted: an inference driver that answers from a script (README.md says its keys).
 *
 * Each call is a fresh instance and nothing is remembered: the step is the number of assistant
 * messages in the request, plus what a continuation id of ours says. Only an error with `times`
 * leaves a trace, a counter below `.scripted/`.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#define SCRIPT_LIMIT_BYTES  (4u << 20)
#define DEFAULT_CHUNK_BYTES 24

/* One call: the request, the script, and the step of it that answers. */
struct call {
    const struct mur_json *request;
    size_t request_len;
    const struct mur_json *script;
    mur_node steps;
    mur_node step;
    size_t number; /* counted from 0, may lie past the script's end */
    size_t number_since_task;
    char *task;   /* text of the last user message */
    char *fenced; /* text of the last tool message, as a model reads it */
    char *result; /* the same without its fence */
};

/* --- The request --- */

static void
add_text_blocks (const struct mur_json *json, mur_node content, struct mur_text *text)
{
    for (mur_node block = mur_json_first (json, content); block >= 0;
         block = mur_json_next (json, block)) {
        char *part = mur_json_text (json, mur_json_get (json, block, "text"));
        if (part != NULL && text->len > 0)
            mur_text_puts (text, "\n");
        if (part != NULL)
            mur_text_puts (text, part);
        free (part);
    }
}

/* What the runtime fenced as untrusted, without the fence: an answer quotes the words, not their
 * wrapping. */
static char *
without_fence (const char *text)
{
    const char *newline =
        strncmp (text, "<untrusted-content ", 19) == 0 ? strchr (text, '\n') : NULL;
    const char *close = newline != NULL ? strstr (newline, "\n</untrusted-content>") : NULL;
    if (close == NULL)
        return mur_format ("%s", text);
    return mur_format ("%.*s", (int)(close > newline ? close - newline - 1 : 0), newline + 1);
}

static char *
text_of_message (const struct mur_json *json, mur_node message)
{
    struct mur_text text = { 0 };
    add_text_blocks (json, mur_json_get (json, message, "content"), &text);
    return text.data != NULL ? text.data : mur_format ("%s", "");
}

/* Whether a continuation of ours says how many steps are done; the answers still sent are among
 * them. */
static bool
continued_steps (const struct mur_json *request, size_t *steps)
{
    static const char prefix[] = "scripted:";
    char *id = mur_json_text (request, mur_json_get (request, 0, "continuation_id"));
    bool is_ours = id != NULL && strncmp (id, prefix, sizeof prefix - 1) == 0;
    *steps = is_ours ? strtoul (id + sizeof prefix - 1, NULL, 10) : 0;
    free (id);
    return is_ours;
}

static void
read_messages (struct call *call)
{
    const struct mur_json *request = call->request;
    mur_node messages = mur_json_get (request, 0, "messages");
    mur_node last_user = -1, last_tool = -1;
    bool is_continued = continued_steps (request, &call->number);
    for (mur_node m = mur_json_first (request, messages); m >= 0; m = mur_json_next (request, m)) {
        mur_node role = mur_json_get (request, m, "role");
        if (mur_json_is (request, role, "assistant"))
            call->number += ! is_continued, call->number_since_task++;
        else if (mur_json_is (request, role, "tool"))
            last_tool = m;
        else if (mur_json_is (request, role, "user"))
            last_user = m, call->number_since_task = 0;
    }
    char *task = text_of_message (request, last_user);
    call->task = without_fence (task);
    call->fenced = text_of_message (request, last_tool);
    call->result = without_fence (call->fenced);
    free (task);
}

/* --- The script --- */

static struct mur_json *
load_script (char **error)
{
    const char *config = mur_env ("MURMUR_INFERENCE_DRIVER_CONFIG", "{}");
    struct mur_json *script = mur_json_parse (config, strlen (config));
    char *file = mur_json_text (script, mur_json_get (script, 0, "file"));
    if (script == NULL || file == NULL) {
        if (script == NULL)
            *error = mur_format ("inference.driver.config is no mapping");
        return script;
    }
    size_t len = 0;
    char *text = mur_file_read (file, SCRIPT_LIMIT_BYTES, &len, error);
    mur_json_free (script);
    script = text == NULL ? NULL : mur_json_parse (text, len);
    if (text != NULL && script == NULL)
        *error = mur_format ("%s is no JSON object or array", file);
    free (text);
    free (file);
    return script;
}

/* --- What a script may say --- */

static const char *const script_keys[] = { "steps", "scripts", "file", NULL };
static const char *const choice_keys[] = { "when", "steps", NULL };
static const char *const step_keys[] = {
    "text",  "thinking", "tool_calls",   "content",        "stop_reason",
    "usage", "stream",   "chunk_bytes",  "chunk_delay_ms", "delay_ms",
    "error", "metadata", "continuation", "save_request",   "raw",
    "trap",  NULL
};
static const char *const call_keys[] = { "name", "input", "id", NULL };
static const char *const error_keys[] = { "message", "status",      "transient",
                                          "times",   "stop_reason", NULL };

/* True when the two differ by case, by '_' and '-' or by at most one letter. */
static bool
is_near (const char *typed, const char *known)
{
    int spare = 1;
    while (*typed || *known) {
        if (*typed == '_' || *typed == '-') {
            typed++;
        } else if (*known == '_') {
            known++;
        } else if (*typed && *known && (*typed | 0x20) == (*known | 0x20)) {
            typed++, known++;
        } else {
            if (spare-- == 0)
                return false;
            size_t typed_len = strlen (typed), known_len = strlen (known);
            typed += typed_len >= known_len && typed_len > 0;
            known += known_len >= typed_len && known_len > 0;
        }
    }
    return true;
}

/* Says which member of a mapping has a key that none of `known` is; true when there is none. */
static bool
has_known_keys (const struct mur_json *script, mur_node mapping, const char *where,
                const char *const *known, char **error)
{
    if (mur_json_kind (script, mapping) != MUR_JSON_OBJECT)
        return true;
    for (mur_node n = mur_json_first (script, mapping); n >= 0; n = mur_json_next (script, n)) {
        char *key = mur_json_key (script, n);
        const char *near = NULL;
        bool is_known = false;
        for (size_t i = 0; known[i] != NULL && ! is_known; i++) {
            is_known = strcmp (key, known[i]) == 0;
            if (is_near (key, known[i]))
                near = known[i];
        }
        struct mur_text all = { 0 };
        for (size_t i = 0; ! is_known && near == NULL && known[i] != NULL; i++)
            mur_text_printf (&all, "%s%s", i ? ", " : "; known are ", known[i]);
        if (! is_known)
            *error = mur_format ("%s: unknown key '%s'%s%s%s%s", where, key,
                                 near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                                 near != NULL ? "'?" : "", all.data != NULL ? all.data : "");
        mur_text_free (&all);
        free (key);
        if (! is_known)
            return false;
    }
    return true;
}

static bool
is_step_known (const struct mur_json *script, mur_node step, const char *where, char **error)
{
    bool is_good = has_known_keys (script, step, where, step_keys, error);
    char *of_call = mur_format ("%s.tool_calls", where), *of_error = mur_format ("%s.error", where);
    mur_node calls = mur_json_get (script, step, "tool_calls");
    for (mur_node c = mur_json_first (script, calls); is_good && c >= 0;
         c = mur_json_next (script, c))
        is_good = has_known_keys (script, c, of_call, call_keys, error);
    is_good = is_good && has_known_keys (script, mur_json_get (script, step, "error"), of_error,
                                         error_keys, error);
    free (of_call);
    free (of_error);
    return is_good;
}

static bool
are_steps_known (const struct mur_json *script, mur_node steps, const char *where, char **error)
{
    bool is_good = true;
    size_t number = 0;
    for (mur_node s = mur_json_first (script, steps); is_good && s >= 0;
         s = mur_json_next (script, s)) {
        char *name = mur_format ("%s[%zu]", where, number++);
        is_good = is_step_known (script, s, name, error);
        free (name);
    }
    return is_good;
}

/* Looked at once, before the first step: a script is the same at each. */
static bool
is_script_known (const struct mur_json *script, char **error)
{
    static const char config[] = "inference.driver.config";
    if (mur_json_kind (script, 0) == MUR_JSON_ARRAY)
        return are_steps_known (script, 0, "the script", error);
    mur_node scripts = mur_json_get (script, 0, "scripts");
    bool is_good = has_known_keys (script, 0, config, script_keys, error) &&
                   are_steps_known (script, mur_json_get (script, 0, "steps"),
                                    "inference.driver.config.steps", error);
    for (mur_node s = mur_json_first (script, scripts); is_good && s >= 0;
         s = mur_json_next (script, s))
        is_good =
            has_known_keys (script, s, "inference.driver.config.scripts", choice_keys, error) &&
            are_steps_known (script, mur_json_get (script, s, "steps"),
                             "inference.driver.config.scripts.steps", error);
    return is_good;
}

/* The steps of the first of `scripts` whose `when` occurs in the task, else `steps`, else the whole
 * file when it is a list. */
static mur_node
choose_steps (struct call *call)
{
    const struct mur_json *script = call->script;
    mur_node scripts = mur_json_get (script, 0, "scripts");
    for (mur_node s = mur_json_first (script, scripts); s >= 0; s = mur_json_next (script, s)) {
        char *when = mur_json_text (script, mur_json_get (script, s, "when"));
        bool is_match = when == NULL || strstr (call->task, when) != NULL;
        free (when);
        if (is_match)
            call->number = call->number_since_task;
        if (is_match)
            return mur_json_get (script, s, "steps");
    }
    return mur_json_kind (script, 0) == MUR_JSON_ARRAY ? 0 : mur_json_get (script, 0, "steps");
}

static bool
choose_step (struct call *call, char **error)
{
    call->steps = choose_steps (call);
    size_t count = mur_json_count (call->script, call->steps);
    if (mur_json_kind (call->script, call->steps) != MUR_JSON_ARRAY || count == 0) {
        *error = mur_format ("inference.driver.config: steps, or a file with steps, is needed");
        return false;
    }
    size_t index = call->number < count ? call->number : count - 1;
    call->step = mur_json_at (call->script, call->steps, index);
    if (mur_json_kind (call->script, call->step) == MUR_JSON_OBJECT)
        return true;
    *error = mur_format ("inference.driver.config: step %zu is no mapping", index);
    return false;
}

static mur_node
step_key (const struct call *call, const char *key)
{
    return mur_json_get (call->script, call->step, key);
}

/* --- Filling in --- */

static void
add_tool_names (const struct call *call, struct mur_text *text)
{
    mur_node tools = mur_json_get (call->request, 0, "tools");
    const char *between = "";
    for (mur_node t = mur_json_first (call->request, tools); t >= 0;
         t = mur_json_next (call->request, t)) {
        char *name = mur_json_text (call->request, mur_json_get (call->request, t, "name"));
        if (name != NULL)
            mur_text_printf (text, "%s%s", between, name);
        between = ", ";
        free (name);
    }
}

static void
add_request_text (const struct call *call, const char *key, struct mur_text *text)
{
    char *value = mur_json_text (call->request, mur_json_get (call->request, 0, key));
    if (value != NULL)
        mur_text_puts (text, value);
    free (value);
}

/* The value of a {{name}}; false when there is no such name. */
static bool
add_value (const struct call *call, const char *name, struct mur_text *text)
{
    const char *const texts[][2] = { { "task", call->task },
                                     { "result", call->result },
                                     { "fenced", call->fenced } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp (name, texts[i][0]) == 0)
            return mur_text_puts (text, texts[i][1]), true;
    if (strcmp (name, "model") == 0 || strcmp (name, "system") == 0)
        return add_request_text (call, name, text), true;
    if (strcmp (name, "step") == 0)
        return mur_text_printf (text, "%zu", call->number), true;
    if (strcmp (name, "tools") == 0)
        return add_tool_names (call, text), true;
    return false;
}

/* Replaces each known {{name}}; anything else stays as written. */
static char *
filled_in (const struct call *call, const char *pattern)
{
    struct mur_text text = { 0 };
    for (const char *open; (open = strstr (pattern, "{{")) != NULL;) {
        const char *close = strstr (open, "}}");
        char *name = mur_format ("%.*s", close != NULL ? (int)(close - open - 2) : 0, open + 2);
        mur_text_add (&text, pattern, (size_t)(open - pattern));
        bool is_known = close != NULL && add_value (call, name, &text);
        if (! is_known)
            mur_text_add (&text, open, 2);
        pattern = is_known ? close + 2 : open + 2;
        free (name);
    }
    mur_text_puts (&text, pattern);
    return text.data;
}

static char *
step_text (const struct call *call, const char *key)
{
    char *pattern = mur_json_text (call->script, step_key (call, key));
    if (pattern == NULL)
        return NULL;
    char *text = filled_in (call, pattern);
    free (pattern);
    return text;
}

/* --- The answer --- */

static void
stream (const struct call *call, const char *text, void (*emit) (const char *, size_t))
{
    if (! mur_json_bool (call->script, step_key (call, "stream"), true))
        return;
    int64_t chunk =
        mur_json_int (call->script, step_key (call, "chunk_bytes"), DEFAULT_CHUNK_BYTES);
    int64_t delay = mur_json_int (call->script, step_key (call, "chunk_delay_ms"), 0);
    size_t limit = chunk < 4 ? 4 : (size_t)chunk;
    for (size_t left = strlen (text); left > 0;) {
        size_t piece = mur_utf8_prefix (text, left, limit);
        emit (text, piece);
        text += piece;
        left -= piece;
        if (delay > 0)
            mur_sleep_ms ((uint64_t)delay);
    }
}

static void
add_block (struct mur_text *content, const char *type)
{
    mur_text_printf (content, "%s{\"type\":\"%s\"", content->len > 1 ? "," : "", type);
}

static void
add_text_block (const struct call *call, struct mur_text *content, const char *key,
                const char *type, void (*emit) (const char *, size_t))
{
    char *text = step_text (call, key);
    if (text == NULL)
        return;
    stream (call, text, emit);
    add_block (content, type);
    mur_text_printf (content, ",\"%s\":", type);
    mur_text_json (content, text);
    mur_text_puts (content, "}");
    free (text);
}

static void
add_tool_call (const struct call *call, struct mur_text *content, mur_node item, size_t position)
{
    const struct mur_json *script = call->script;
    char *name = mur_json_text (script, mur_json_get (script, item, "name"));
    char *id = mur_json_text (script, mur_json_get (script, item, "id"));
    if (id == NULL)
        id = mur_format ("call_%zu_%zu", call->number, position);
    size_t len;
    const char *input = mur_json_raw (script, mur_json_get (script, item, "input"), &len);
    char *filled = mur_format ("%.*s", (int)(len > 0 ? len : 2), len > 0 ? input : "{}");
    mur_call_started (id, name != NULL ? name : "");
    mur_call_bytes (id, strlen (filled));
    add_block (content, "tool_call");
    mur_text_puts (content, ",\"id\":");
    mur_text_json (content, id);
    mur_text_puts (content, ",\"name\":");
    mur_text_json (content, name != NULL ? name : "");
    mur_text_printf (content, ",\"input\":%s}", filled);
    free (filled);
    free (name);
    free (id);
}

/* Writes the content array; returns how many tool calls it holds. */
static size_t
add_content (const struct call *call, struct mur_text *content)
{
    mur_node given = step_key (call, "content");
    mur_node calls = step_key (call, "tool_calls");
    if (given >= 0) {
        size_t len, count = 0;
        const char *raw = mur_json_raw (call->script, given, &len);
        mur_text_add (content, raw, len);
        for (mur_node b = mur_json_first (call->script, given); b >= 0;
             b = mur_json_next (call->script, b))
            count +=
                mur_json_is (call->script, mur_json_get (call->script, b, "type"), "tool_call");
        return count;
    }
    mur_text_puts (content, "[");
    add_text_block (call, content, "thinking", "thinking", mur_emit_thinking);
    add_text_block (call, content, "text", "text", mur_emit);
    size_t position = 0;
    for (mur_node c = mur_json_first (call->script, calls); c >= 0;
         c = mur_json_next (call->script, c))
        add_tool_call (call, content, c, position++);
    mur_text_puts (content, "]");
    return position;
}

static void
add_usage (const struct call *call, struct mur_text *answer, size_t content_len)
{
    mur_node usage = step_key (call, "usage");
    if (mur_json_is (call->script, usage, "none"))
        return;
    size_t len = 0;
    const char *raw = mur_json_raw (call->script, usage, &len);
    if (len > 0)
        mur_text_printf (answer, ",\"usage\":%.*s", (int)len, raw);
    else
        mur_text_printf (answer, ",\"usage\":{\"input_tokens\":%zu,\"output_tokens\":%zu}",
                         call->request_len / 4 + 1, content_len / 4 + 1);
}

static void
add_metadata (const struct call *call, struct mur_result *out)
{
    mur_node metadata = step_key (call, "metadata");
    for (mur_node n = mur_json_first (call->script, metadata); n >= 0;
         n = mur_json_next (call->script, n)) {
        char *key = mur_json_key (call->script, n);
        char *value = mur_json_text (call->script, n);
        if (value != NULL)
            mur_metadata (out, key, value);
        free (key);
        free (value);
    }
    if (mur_json_bool (call->script, step_key (call, "continuation"), false)) {
        char *id = mur_format ("scripted:%zu", call->number + 1);
        mur_metadata (out, "continuation_id", id);
        free (id);
    }
}

static void
answer (const struct call *call, struct mur_result *out)
{
    struct mur_text content = { 0 };
    struct mur_text text = { 0 };
    size_t calls = add_content (call, &content);
    char *stop_reason = mur_json_text (call->script, step_key (call, "stop_reason"));
    mur_text_puts (&text, "{\"stop_reason\":");
    mur_text_json (&text, stop_reason != NULL ? stop_reason : calls > 0 ? "tool_call" : "end_turn");
    mur_text_printf (&text, ",\"content\":%s", content.data);
    add_usage (call, &text, content.len);
    mur_text_puts (&text, "}");
    mur_passed_text (out, &text);
    add_metadata (call, out);
    mur_text_free (&content);
    free (stop_reason);
}

/* --- Errors of the script --- */

/* True while an error with `times` has not yet failed that often. */
static bool
error_is_due (const struct call *call, mur_node error)
{
    int64_t times = mur_json_int (call->script, mur_json_get (call->script, error, "times"), -1);
    if (times < 0)
        return true;
    char *path = mur_format (".scripted/step-%zu", call->number);
    char *seen = mur_file_read (path, 64, NULL, NULL);
    long count = seen != NULL ? strtol (seen, NULL, 10) : 0;
    free (seen);
    char *next = mur_format ("%ld\n", count + 1);
    if (count < times)
        mur_file_write (path, next, strlen (next), true, NULL);
    free (next);
    free (path);
    return count < times;
}

/* The statuses that a runtime may try again. */
static bool
status_is_transient (int64_t status)
{
    return status == 408 || status == 429 ||
           (status >= 500 && status < 600 && status != 501 && status != 505);
}

static void
fail_as_told (const struct call *call, mur_node error, struct mur_result *out)
{
    const struct mur_json *script = call->script;
    bool is_sentence = mur_json_kind (script, error) == MUR_JSON_STRING;
    char *message =
        mur_json_text (script, is_sentence ? error : mur_json_get (script, error, "message"));
    int64_t status = mur_json_int (script, mur_json_get (script, error, "status"), 0);
    struct mur_text sentence = { 0 };
    if (status > 0)
        mur_text_printf (&sentence, "provider answered %lld%s", (long long)status,
                         message != NULL ? ": " : "");
    mur_text_puts (&sentence, message != NULL ? message : status > 0 ? "" : "scripted error");
    struct mur_text text = { 0 };
    mur_text_puts (&text, "{\"stop_reason\":\"error\",\"content\":[],\"error\":");
    mur_text_json (&text, sentence.data);
    if (step_key (call, "usage") >= 0)
        add_usage (call, &text, 0);
    mur_text_puts (&text, "}");
    mur_passed_text (out, &text);
    bool is_in_answer = mur_json_is (script, mur_json_get (script, error, "stop_reason"), "error");
    out->status = is_in_answer ? MUR_PASSED : MUR_FAILED;
    out->summary = sentence.data;
    mur_node transient = mur_json_get (script, error, "transient");
    if (transient >= 0 || status > 0)
        mur_metadata (out, "transient",
                      mur_json_bool (script, transient, status_is_transient (status)) ? "true"
                                                                                      : "false");
    add_metadata (call, out);
    free (message);
}

/* --- A call --- */

static void
save_request (const struct call *call, const struct mur_input *in)
{
    char *path = step_text (call, "save_request");
    char *error = NULL;
    if (path != NULL && ! mur_file_write (path, in->data, in->data_len, true, &error))
        mur_log ("driver-scripted: save_request: %s", error);
    free (path);
    free (error);
}

static void
play (const struct call *call, struct mur_result *out)
{
    int64_t delay = mur_json_int (call->script, step_key (call, "delay_ms"), 0);
    if (delay > 0)
        mur_sleep_ms ((uint64_t)delay);
    mur_node error = step_key (call, "error");
    char *raw = step_text (call, "raw");
    if (mur_json_bool (call->script, step_key (call, "trap"), false))
        abort ();
    if (error >= 0 && error_is_due (call, error))
        fail_as_told (call, error, out);
    else if (raw != NULL)
        mur_passed (out, "%s", raw);
    else
        answer (call, out);
    free (raw);
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct call call = { .request = in->json, .request_len = in->data_len };
    char *error = NULL;
    if (in->json == NULL) {
        mur_failed (out, "the request is no JSON object");
        return;
    }
    read_messages (&call);
    struct mur_json *script = load_script (&error);
    call.script = script;
    if (script == NULL || (call.number == 0 && ! is_script_known (script, &error)) ||
        ! choose_step (&call, &error)) {
        mur_failed (out, "%s", error);
    } else {
        save_request (&call, in);
        play (&call, out);
    }
    mur_json_free (script);
    free (call.task);
    free (call.fenced);
    free (call.result);
    free (error);
}
