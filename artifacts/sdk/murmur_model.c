/* SPDX-License-Identifier: Apache-2.0
 *
 * The common half of drivers that ask a provider over HTTP (murmur_model.h says what each function
 * does).
 *
 * What a failure means for the runtime is decided here once: a status, an error event, a stream
 * that ends early and JSON that is none each become a failed call with a sentence and, where it is
 * known, the `transient` word.
 */
#include "murmur_model.h"
#include "murmur_internal.h"

#include <stdio.h>

/* --- Server-sent events --- */

static void
sse_dispatch (struct mur_sse *sse)
{
    if (sse->has_data)
        sse->take (sse->context, sse->data.data != NULL ? sse->data.data : "", sse->data.len);
    sse->data.len = 0;
    sse->has_data = false;
}

/* Only the data counts: the providers name each event's type in it too. */
static void
sse_line (struct mur_sse *sse)
{
    static const char field[] = "data";
    const char *line = sse->line.data != NULL ? sse->line.data : "";
    size_t len = sse->line.len;
    if (! sse->is_started && len >= 3 && memcmp (line, "\xef\xbb\xbf", 3) == 0)
        line += 3, len -= 3;
    sse->is_started = true;
    sse->line.len = 0;
    if (len == 0) {
        sse_dispatch (sse);
        return;
    }
    const char *colon = memchr (line, ':', len);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : len;
    if (name_len != sizeof field - 1 || memcmp (line, field, name_len) != 0)
        return;
    size_t from = colon != NULL ? name_len + 1 : len;
    if (from < len && line[from] == ' ')
        from++;
    if (sse->has_data)
        mur_text_puts (&sse->data, "\n");
    mur_text_utf8 (&sse->data, line + from, len - from);
    sse->has_data = true;
}

void
mur_sse_feed (struct mur_sse *sse, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (sse->is_after_cr && bytes[i] == '\n') {
            sse->is_after_cr = false;
            i++;
            continue;
        }
        sse->is_after_cr = false;
        size_t from = i;
        while (i < len && bytes[i] != '\r' && bytes[i] != '\n')
            i++;
        mur_text_add (&sse->line, bytes + from, i - from);
        if (i == len)
            break;
        sse->is_after_cr = bytes[i++] == '\r';
        sse_line (sse);
    }
}

void
mur_sse_end (struct mur_sse *sse)
{
    if (sse->line.len > 0)
        sse_line (sse);
    sse_dispatch (sse);
    mur_text_free (&sse->line);
    mur_text_free (&sse->data);
}

#if defined(MUR_ROLE_TOOL)

#define ANSWER_LIMIT_BYTES (64u << 20)
#define QUOTE_LIMIT_BYTES  500
#define MAX_HEADERS        32

/* --- The answer --- */

struct mur_block *
mur_answer_find (struct mur_answer *answer, int64_t number)
{
    for (size_t i = answer->count; i > 0; i--)
        if (answer->blocks[i - 1].number == number)
            return &answer->blocks[i - 1];
    return NULL;
}

struct mur_block *
mur_answer_add (struct mur_answer *answer, enum mur_block_kind kind, int64_t number)
{
    answer->blocks = must (realloc (answer->blocks, (answer->count + 1) * sizeof *answer->blocks));
    struct mur_block *block = &answer->blocks[answer->count++];
    *block = (struct mur_block){ .kind = kind, .number = number };
    return block;
}

struct mur_block *
mur_answer_block (struct mur_answer *answer, enum mur_block_kind kind, int64_t number)
{
    struct mur_block *block = mur_answer_find (answer, number);
    return block != NULL && block->kind == kind ? block : mur_answer_add (answer, kind, number);
}

void
mur_block_grow (struct mur_block *block, const char *piece)
{
    if (piece == NULL || *piece == '\0')
        return;
    mur_text_puts (&block->text, piece);
    if (block->kind == MUR_BLOCK_TEXT)
        mur_emit (piece, strlen (piece));
    else if (block->kind == MUR_BLOCK_THINKING)
        mur_emit_thinking (piece, strlen (piece));
    else if (block->kind == MUR_BLOCK_CALL && block->id != NULL)
        mur_call_bytes (block->id, block->text.len);
}

void
mur_block_input (struct mur_block *block, const struct mur_json *json, mur_node input)
{
    if (mur_json_kind (json, input) != MUR_JSON_OBJECT)
        return;
    mur_text_node (&block->text, NULL, json, input);
    if (block->id != NULL)
        mur_call_bytes (block->id, block->text.len);
}

void
mur_block_call (struct mur_block *block, char *id, char *name)
{
    block->id = id;
    block->name = name;
    if (id != NULL && name != NULL)
        mur_call_started (id, name);
}

void
mur_answer_usage (struct mur_answer *answer, enum mur_usage which, const struct mur_json *json,
                  mur_node number)
{
    int64_t value = mur_json_int (json, number, -1);
    if (value >= 0)
        answer->usage[which] = value;
}

void
mur_answer_fail (struct mur_answer *answer, enum mur_transient transient, const char *format, ...)
{
    if (answer->error != NULL)
        return;
    struct mur_text sentence = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&sentence, format, arguments);
    va_end (arguments);
    answer->error = sentence.data;
    answer->transient = transient;
}

void
mur_answer_stop (struct mur_answer *answer, const struct mur_json *json, mur_node reason,
                 const char *const table[][2])
{
    char *word = mur_json_text (json, reason);
    if (word == NULL)
        return;
    free (answer->stop_reason);
    answer->stop_reason = word;
    for (size_t i = 0; table[i][0] != NULL; i++)
        if (strcmp (word, table[i][0]) == 0)
            answer->stop_reason = copy_bytes (table[i][1], strlen (table[i][1]));
    if (answer->stop_reason != word)
        free (word);
}

/* --- Handing over --- */

static bool
is_stopped_by (const struct mur_answer *answer, const char *reason)
{
    return answer->stop_reason != NULL && strcmp (answer->stop_reason, reason) == 0;
}

/* A call whose input broke off at the output cap is dropped; any other that cannot be made fails
 * the answer. Returns whether the call is kept. */
static bool
judge_call (struct mur_answer *answer, struct mur_block *block)
{
    if (block->text.len == 0)
        mur_text_puts (&block->text, "{}");
    bool has_name = block->name != NULL && *block->name != '\0';
    bool is_object = mur_json_check (block->text.data, block->text.len, NULL) &&
                     block->text.data[strspn (block->text.data, " \t\r\n")] == '{';
    if (has_name && is_object)
        return true;
    if (! is_stopped_by (answer, "max_tokens"))
        mur_answer_fail (answer, MUR_TRANSIENT_YES,
                         has_name ? "the model called %s with an input that is no JSON object"
                                  : "the model made a call without a name",
                         block->name);
    return false;
}

static void
add_block (struct mur_text *to, const struct mur_block *block)
{
    static const char *const types[] = { "text", "thinking", "tool_call" };
    const char *text = block->text.data != NULL ? block->text.data : "";
    mur_text_comma (to);
    if (block->kind == MUR_BLOCK_OTHER) {
        mur_text_puts (to, text);
        return;
    }
    mur_text_puts (to, "{");
    mur_text_string (to, "type", types[block->kind]);
    if (block->kind == MUR_BLOCK_CALL) {
        mur_text_string (to, "id", block->id != NULL ? block->id : "");
        mur_text_string (to, "name", block->name);
        mur_text_key (to, "input");
        mur_text_add (to, text, block->text.len);
    } else {
        mur_text_string (to, types[block->kind], text);
    }
    if (block->more.len > 0) {
        mur_text_comma (to);
        mur_text_add (to, block->more.data, block->more.len);
    }
    mur_text_puts (to, "}");
}

static void
add_usage (struct mur_text *to, const int64_t *usage)
{
    static const char *const names[MUR_USAGE_COUNT] = {
        [MUR_USAGE_INPUT] = "input_tokens",       [MUR_USAGE_OUTPUT] = "output_tokens",
        [MUR_USAGE_CACHED] = "cached_tokens",     [MUR_USAGE_CACHE_WRITE] = "cache_write_tokens",
        [MUR_USAGE_THINKING] = "thinking_tokens",
    };
    mur_text_key (to, "usage");
    mur_text_puts (to, "{");
    for (size_t i = 0; i < MUR_USAGE_COUNT; i++) {
        if (usage[i] < 0)
            continue;
        mur_text_key (to, names[i]);
        mur_text_printf (to, "%lld", (long long)usage[i]);
    }
    mur_text_puts (to, "}");
}

static void
hand_over_failure (struct mur_answer *answer, struct mur_result *out)
{
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{\"stop_reason\":\"error\",\"content\":[]");
    mur_text_string (&to, "error", answer->error);
    add_usage (&to, answer->usage);
    mur_text_puts (&to, "}");
    mur_passed_text (out, &to);
    out->status = MUR_FAILED;
    out->summary = answer->error;
    if (answer->transient != MUR_TRANSIENT_UNTOLD)
        mur_metadata (out, "transient", answer->transient == MUR_TRANSIENT_YES ? "true" : "false");
}

static void
hand_over (struct mur_answer *answer, struct mur_result *out)
{
    struct mur_text content = { 0 };
    for (size_t i = 0; i < answer->count; i++) {
        struct mur_block *block = &answer->blocks[i];
        if (block->kind == MUR_BLOCK_CALL ? judge_call (answer, block)
                                          : block->text.len > 0 || block->more.len > 0)
            add_block (&content, block);
    }
    if (answer->stop_reason == NULL)
        mur_answer_fail (answer, MUR_TRANSIENT_YES,
                         "the provider's answer ended before it was complete");
    if (answer->error != NULL) {
        hand_over_failure (answer, out);
        return;
    }
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{");
    mur_text_string (&to, "stop_reason", answer->stop_reason);
    mur_text_key (&to, "content");
    mur_text_puts (&to, "[");
    mur_text_add (&to, content.data, content.len);
    mur_text_puts (&to, "]");
    add_usage (&to, answer->usage);
    mur_text_puts (&to, "}");
    mur_passed_text (out, &to);
}

/* --- What the provider refuses --- */

/* Statuses that may pass by themselves. */
static bool
status_is_transient (unsigned status)
{
    return status == 408 || status == 409 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

static enum mur_transient
transient_by_type (const char *type, enum mur_transient otherwise)
{
    static const struct {
        const char *type;
        enum mur_transient transient;
    } types[] = {
        { "insufficient_quota", MUR_TRANSIENT_NO }, { "billing_error", MUR_TRANSIENT_NO },
        { "overloaded_error", MUR_TRANSIENT_YES },  { "api_error", MUR_TRANSIENT_YES },
        { "timeout_error", MUR_TRANSIENT_YES },     { "rate_limit_error", MUR_TRANSIENT_YES },
        { "server_error", MUR_TRANSIENT_YES },      { "rate_limit_exceeded", MUR_TRANSIENT_YES },
    };
    for (size_t i = 0; type != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp (type, types[i].type) == 0)
            return types[i].transient;
    return otherwise;
}

/* The words of an error answer: `{"error": {"type", "code", "message"}}`, `{"error": "message"}`,
 * `{"message"}`, or the text as it is. */
struct refusal {
    char *type;
    char *code;
    char *message;
};

static struct refusal
read_refusal (const struct mur_json *json, const struct mur_text *body)
{
    mur_node error = mur_json_get (json, 0, "error");
    mur_node from = mur_json_kind (json, error) == MUR_JSON_OBJECT ? error : 0;
    struct refusal refusal = {
        .type = mur_json_text (json, mur_json_get (json, from, "type")),
        .code = mur_json_text (json, mur_json_get (json, from, "code")),
        .message = mur_json_text (json, mur_json_get (json, from, "message")),
    };
    if (refusal.message == NULL)
        refusal.message = mur_json_text (json, error);
    if (refusal.message == NULL && body != NULL && body->len > 0) {
        struct mur_text text = { 0 };
        mur_text_utf8 (&text, body->data, strcspn (body->data, "\r\n"));
        refusal.message = text.data;
    }
    return refusal;
}

/* What the error's code, or else its type, says of trying again. */
static enum mur_transient
refusal_transient (const struct refusal *refusal, enum mur_transient otherwise)
{
    return transient_by_type (refusal->code, transient_by_type (refusal->type, otherwise));
}

/* Fails the answer with `<what> (<type>): <message>`. */
static void
fail_refused (struct mur_answer *answer, const char *what, const struct refusal *refusal,
              enum mur_transient transient)
{
    struct mur_text sentence = { 0 };
    mur_text_puts (&sentence, what);
    const char *kind = refusal->code != NULL ? refusal->code : refusal->type;
    if (kind != NULL)
        mur_text_printf (&sentence, " (%.*s)", (int)mur_utf8_prefix (kind, strlen (kind), 80),
                         kind);
    const char *message = refusal->message;
    if (message != NULL && *message != '\0')
        mur_text_printf (&sentence, ": %.*s",
                         (int)mur_utf8_prefix (message, strlen (message), QUOTE_LIMIT_BYTES),
                         message);
    mur_answer_fail (answer, transient, "%s", sentence.data);
    mur_text_free (&sentence);
}

/* A status that passes by itself is final when the error's type says so; the provider's own advice
 * goes before both. */
static void
refused_by_status (struct mur_answer *answer, const struct mur_http_response *response,
                   const struct mur_text *body)
{
    unsigned status = response->status;
    struct mur_json *json = body->len > 0 ? mur_json_parse (body->data, body->len) : NULL;
    struct refusal refusal = read_refusal (json, body);
    enum mur_transient transient = status_is_transient (status)
                                       ? refusal_transient (&refusal, MUR_TRANSIENT_YES)
                                       : MUR_TRANSIENT_NO;
    char *advice = mur_http_header (response, "x-should-retry");
    if (advice != NULL && (strcmp (advice, "true") == 0 || strcmp (advice, "false") == 0))
        transient = *advice == 't' ? MUR_TRANSIENT_YES : MUR_TRANSIENT_NO;
    char *place = status >= 300 && status < 400 ? mur_http_header (response, "location") : NULL;
    char *what = mur_format ("the provider answered %u%s%.200s", status,
                             place != NULL ? ", a redirect to " : "", place != NULL ? place : "");
    fail_refused (answer, what, &refusal, transient);
    free (advice);
    free (place);
    free (what);
    mur_json_free (json);
}

/* --- Reading --- */

struct reading {
    const struct mur_provider *provider;
    struct mur_answer *answer;
};

/* An error may come as an event, or as a whole answer with status 200. */
static bool
is_refusal (struct mur_answer *answer, const struct mur_json *json)
{
    enum mur_json_kind kind = mur_json_kind (json, mur_json_get (json, 0, "error"));
    if (kind != MUR_JSON_OBJECT && kind != MUR_JSON_STRING)
        return false;
    struct refusal refusal = read_refusal (json, NULL);
    fail_refused (answer, "the provider broke off", &refusal,
                  refusal_transient (&refusal, MUR_TRANSIENT_NO));
    return true;
}

static void
take_json (struct reading *reading, const char *text, size_t len,
           void (*take) (struct mur_answer *, const struct mur_json *))
{
    struct mur_json *json = mur_json_check (text, len, NULL) ? mur_json_parse (text, len) : NULL;
    if (json == NULL)
        mur_answer_fail (reading->answer, MUR_TRANSIENT_YES,
                         "the provider sent something that is no JSON: %.*s",
                         (int)mur_utf8_prefix (text, len, 100), text);
    else if (! is_refusal (reading->answer, json))
        take (reading->answer, json);
    mur_json_free (json);
}

static void
take_event (void *context, const char *data, size_t len)
{
    struct reading *reading = context;
    if (strcmp (data, "[DONE]") != 0)
        take_json (reading, data, len, reading->provider->take_event);
}

static bool
is_event_stream (const struct mur_http_response *response)
{
    static const char name[] = "text/event-stream";
    char *type = mur_http_header (response, "content-type");
    bool is_stream =
        response->status == 200 && type != NULL && strncmp (type, name, sizeof name - 1) == 0;
    free (type);
    return is_stream;
}

static void
take_body (struct reading *reading, const struct mur_http_response *response, struct mur_text *body)
{
    struct mur_text text = { 0 };
    mur_text_utf8 (&text, body->data, body->len);
    if (response->status != 200)
        refused_by_status (reading->answer, response, &text);
    else if (text.len == 0 || text.data[strspn (text.data, " \t\r\n")] != '{')
        mur_answer_fail (reading->answer, MUR_TRANSIENT_NO,
                         "the provider's answer is neither JSON nor a stream of events: "
                         "is the endpoint right?");
    else
        take_json (reading, text.data, text.len, reading->provider->take_whole);
    mur_text_free (&text);
}

/* Reads to the very end, so that the connection serves the next call too. An answer that was
 * already complete stands, however the connection ends. */
static void
read_answer (struct reading *reading, struct mur_http_response *response)
{
    struct mur_sse sse = { .take = take_event, .context = reading };
    struct mur_text body = { 0 };
    bool is_stream = is_event_stream (response);
    char chunk[16384];
    char *error = NULL;
    size_t total = 0;
    long got;
    while ((got = mur_http_read (response, chunk, sizeof chunk, &error)) > 0) {
        total += (size_t)got;
        if (total > ANSWER_LIMIT_BYTES) {
            mur_answer_fail (reading->answer, MUR_TRANSIENT_NO,
                             "the provider's answer is larger than %u MiB",
                             ANSWER_LIMIT_BYTES >> 20);
            break;
        }
        if (is_stream)
            mur_sse_feed (&sse, chunk, (size_t)got);
        else
            mur_text_add (&body, chunk, (size_t)got);
    }
    if (got < 0 && reading->answer->stop_reason == NULL)
        mur_answer_fail (reading->answer, MUR_TRANSIENT_UNTOLD, "the provider: %s", error);
    else if (is_stream)
        mur_sse_end (&sse);
    else if (got >= 0 && reading->answer->error == NULL)
        take_body (reading, response, &body);
    mur_text_free (&body);
    free (error);
}

/* --- The request --- */

bool
mur_block_is (const struct mur_json *json, mur_node block, const char *type)
{
    return mur_json_is (json, mur_json_get (json, block, "type"), type);
}

/* --- The call --- */

struct mur_json *
mur_driver_config (void)
{
    const char *text = mur_env ("MURMUR_INFERENCE_DRIVER_CONFIG", "{}");
    return mur_json_parse (text, strlen (text));
}

bool
mur_driver_streams (const struct mur_json *config)
{
    return mur_json_bool (config, mur_json_get (config, 0, "stream"), true);
}

void
mur_driver_tools (const struct mur_json *json, struct mur_text *body, const char *open,
                  const char *schema_key, const char *close)
{
    mur_node tools = mur_json_get (json, 0, "tools");
    if (mur_json_count (json, tools) == 0)
        return;
    mur_text_key (body, "tools");
    mur_text_puts (body, "[");
    for (mur_node t = mur_json_first (json, tools); t >= 0; t = mur_json_next (json, t)) {
        mur_text_comma (body);
        mur_text_puts (body, open);
        mur_text_node (body, "name", json, mur_json_get (json, t, "name"));
        mur_text_node (body, "description", json, mur_json_get (json, t, "description"));
        mur_text_node (body, schema_key, json, mur_json_get (json, t, "parameters"));
        mur_text_puts (body, close);
    }
    mur_text_puts (body, "]");
}

bool
mur_driver_request_members (const struct mur_provider *provider, const struct mur_json *config,
                            struct mur_text *body, struct mur_result *out)
{
    mur_node members = mur_json_get (config, 0, "request");
    for (mur_node n = mur_json_first (config, members); n >= 0; n = mur_json_next (config, n)) {
        char *key = mur_json_key (config, n);
        for (size_t i = 0; key != NULL && provider->own_members[i] != NULL; i++)
            if (strcmp (key, provider->own_members[i]) == 0) {
                mur_failed (out, "inference.driver.config.request.%s: the driver writes it itself",
                            key);
                return false;
            }
        if (key != NULL)
            mur_text_node (body, key, config, n);
        free (key);
    }
    return true;
}

static size_t
gather_headers (const struct mur_provider *provider, const struct mur_json *config,
                struct mur_http_header *headers)
{
    size_t count = 0;
    headers[count++] = (struct mur_http_header){ "content-type", "application/json" };
    headers[count++] = (struct mur_http_header){ "accept", "text/event-stream, application/json" };
    if (provider->header[0] != NULL)
        headers[count++] = (struct mur_http_header){ provider->header[0], provider->header[1] };
    mur_node more = mur_json_get (config, 0, "headers");
    for (mur_node n = mur_json_first (config, more); n >= 0 && count < MAX_HEADERS;
         n = mur_json_next (config, n)) {
        char *value = mur_json_text (config, n);
        if (value != NULL)
            headers[count++] = (struct mur_http_header){ mur_json_key (config, n), value };
    }
    return count;
}

/* `https://host` and `https://host/v1` name the same interface; a deeper path is taken as it is. */
static char *
provider_url (const struct mur_provider *provider, const struct mur_json *config)
{
    const char *endpoint = mur_env ("MURMUR_INFERENCE_ENDPOINT", "");
    char *path = mur_json_text (config, mur_json_get (config, 0, "path"));
    if (path != NULL)
        return mur_format ("%s%s", endpoint, path);
    const char *host = strstr (endpoint, "://");
    const char *own = host != NULL ? strchr (host + 3, '/') : NULL;
    size_t len = strlen (endpoint), version_len = strlen (provider->version);
    bool has_version =
        own != NULL &&
        (provider->is_versioned ||
         (len >= version_len && strcmp (endpoint + len - version_len, provider->version) == 0));
    return mur_format ("%s%s%s", endpoint, has_version ? "" : provider->version, provider->path);
}

void
mur_provider_call (const struct mur_provider *provider, const struct mur_json *config,
                   const struct mur_text *body, struct mur_result *out)
{
    struct mur_http_header headers[MAX_HEADERS];
    struct mur_http_request request = {
        .url = provider_url (provider, config),
        .headers = headers,
        .header_count = gather_headers (provider, config, headers),
        .body = body->data,
        .body_len = body->len,
    };
    struct mur_http_response response;
    struct mur_answer answer = { .usage = { -1, -1, -1, -1, -1 } };
    char *error = NULL;
    if (! mur_http_open (&request, &response, &error)) {
        /* The address is the gateway's inside the sandbox, which says nothing to anyone. */
        size_t url_len = strlen (request.url);
        bool has_url = strncmp (error, request.url, url_len) == 0 && error[url_len] == ':';
        mur_answer_fail (&answer, MUR_TRANSIENT_UNTOLD, "the provider cannot be reached: %s",
                         has_url ? error + url_len + 2 : error);
        hand_over_failure (&answer, out);
        return;
    }
    struct reading reading = { provider, &answer };
    read_answer (&reading, &response);
    mur_http_close (&response);
    hand_over (&answer, out);
}

#endif
