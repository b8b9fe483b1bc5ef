/* SPDX-License-Identifier: Apache-2.0
 *
 * The common half of drivers that ask a provider over HTTP (murmur_model.h says what each function
 * does).
 *
 * What the bytes are is decided by the bytes: gateways send events as plain text, and whole answers
 * to those who asked for events.
 */
#include "murmur_model.h"
#include "murmur_internal.h"
#include "murmur_names.h"
#include "murmur_refusal.h"

#include <ctype.h>
#include <stdio.h>

#if defined(MUR_ROLE_TOOL)

#define ANSWER_LIMIT_BYTES (64u << 20)
#define MAX_HEADERS        32

/* --- Reading --- */

enum body_form {
    BODY_UNKNOWN, /* too little of it has come */
    BODY_EVENTS,
    BODY_WHOLE,
};

struct reading {
    const struct mur_provider *provider;
    struct mur_answer *answer;
    struct mur_sse sse;
    struct mur_text body; /* all of it, or what came before its form was known */
    enum body_form form;
    bool is_declared;      /* the header says that it is a stream of events */
    bool has_event;        /* one of the events was JSON */
    struct mur_text first; /* JSON that was taken first */
};

/* What Python writes where JSON has no number. */
static size_t
no_number_at (const char *text)
{
    size_t sign = *text == '-' ? 1 : 0;
    return strncmp (text + sign, "NaN", 3) == 0        ? sign + 3
           : strncmp (text + sign, "Infinity", 8) == 0 ? sign + 8
                                                       : 0;
}

/* The text with null for each of them that stands outside of a string. */
static void
null_no_numbers (struct mur_text *text)
{
    struct mur_text to = { 0 };
    bool is_in_string = false;
    for (size_t i = 0, step; i < text->len; i += step) {
        const char *at = text->data + i;
        size_t word = is_in_string ? 0 : no_number_at (at);
        step = word > 0 ? word : is_in_string && *at == '\\' && i + 1 < text->len ? 2 : 1;
        is_in_string = is_in_string != (*at == '"');
        mur_text_add (&to, word > 0 ? "null" : at, word > 0 ? 4 : step);
    }
    mur_text_free (text);
    *text = to;
}

/* Takes one value of JSON; false when it is none. */
static bool
take_json (struct reading *reading, const char *text, size_t len,
           void (*take) (struct mur_answer *, const struct mur_json *))
{
    struct mur_text clean = { 0 };
    text_add_escaped (&clean, text, len);
    if (clean.len > 0 && ! mur_json_check (clean.data, clean.len, NULL))
        null_no_numbers (&clean);
    struct mur_json *json = clean.len > 0 && mur_json_check (clean.data, clean.len, NULL)
                                ? mur_json_parse (clean.data, clean.len)
                                : NULL;
    bool is_json = json != NULL;
    if (is_json && ! mur_refusal_is (reading->answer, json)) {
        if (mur_json_kind (json, 0) == MUR_JSON_OBJECT) {
            if (reading->first.len == 0)
                mur_text_add (&reading->first, clean.data, clean.len);
            take (reading->answer, json);
        } else
            is_json = false;
    }
    mur_json_free (json);
    mur_text_free (&clean);
    return is_json;
}

static void
fail_no_json (struct reading *reading, const char *text, size_t len)
{
    struct mur_text quote = { 0 };
    mur_text_utf8 (&quote, text, len < 120 ? len : 120);
    char *line =
        copy_text (quote.len > 0 ? quote.data : "", mur_utf8_prefix (quote.data, quote.len, 100));
    mur_answer_fail (reading->answer, MUR_TRANSIENT_YES,
                     "the provider sent something that is no JSON: %s", line);
    free (line);
    mur_text_free (&quote);
}

/* It looked like a stream of events, and nobody said that it is one. */
static void
fail_no_events (struct reading *reading, const char *data, size_t len)
{
    struct mur_text page = { 0 };
    mur_text_utf8 (&page, data, len);
    mur_refusal_of_page (reading->answer, &page, false);
    mur_text_free (&page);
}

/* Words that only keep the connection open, and the one that ends the stream. */
static bool
is_word (const char *data, size_t len, const char *const *words)
{
    while (len > 0 && isspace ((unsigned char)data[len - 1]))
        len--;
    while (len > 0 && isspace ((unsigned char)*data))
        data++, len--;
    for (; *words != NULL; words++)
        if (strlen (*words) == len && strncasecmp (data, *words, len) == 0)
            return true;
    return false;
}

static void
take_event (void *context, const char *data, size_t len)
{
    static const char *const idle[] = { "",          "ping", "\"ping\"", "keep-alive", "keepalive",
                                        "heartbeat", "null", "{}",       NULL };
    static const char *const ends[] = { "[DONE]", "DONE", "\"[DONE]\"", NULL };
    struct reading *reading = context;
    const char *name = reading->sse.event.len > 0 ? reading->sse.event.data : "";
    if (is_word (data, len, ends)) {
        reading->answer->is_ended = true;
        return;
    }
    if (is_word (data, len, idle) || is_word (name, strlen (name), idle + 1))
        return;
    reading->answer->event = *name != '\0' ? name : NULL;
    bool is_json = take_json (reading, data, len, reading->provider->take_event);
    reading->answer->event = NULL;
    if (is_json) {
        reading->has_event = true;
        return;
    }
    if (strcmp (name, "error") == 0)
        mur_answer_fail (reading->answer, MUR_TRANSIENT_YES, "the provider broke off: %.500s",
                         data);
    else if (reading->has_event || reading->is_declared)
        fail_no_json (reading, data, len);
    else
        fail_no_events (reading, data, len);
}

/* --- What the bytes are --- */

static bool
begins_with (const char *text, size_t len, const char *word)
{
    size_t word_len = strlen (word);
    return memcmp (text, word, len < word_len ? len : word_len) == 0;
}

static enum body_form
form_of (const struct reading *reading, bool is_all)
{
    static const char *const fields[] = { "data:", "event:", "id:", "retry:", ":" };
    const char *at = reading->body.data != NULL ? reading->body.data : "";
    size_t len = reading->body.len;
    if (len > 0 && begins_with (at, len, "\xef\xbb\xbf")) {
        if (len < 3)
            return is_all ? BODY_WHOLE : BODY_UNKNOWN;
        at += 3, len -= 3;
    }
    while (len > 0 && strchr (" \t\r\n", *at) != NULL && *at != '\0')
        at++, len--;
    if (len == 0)
        return is_all ? BODY_WHOLE : BODY_UNKNOWN;
    if (strchr ("{[<", *at) != NULL)
        return BODY_WHOLE;
    if (reading->is_declared)
        return BODY_EVENTS;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (begins_with (at, len, fields[i])) {
            if (len >= strlen (fields[i]))
                return BODY_EVENTS;
            return is_all ? BODY_WHOLE : BODY_UNKNOWN;
        }
    return BODY_WHOLE;
}

static void
take_bytes (struct reading *reading, const char *bytes, size_t len)
{
    if (reading->form == BODY_EVENTS) {
        mur_sse_feed (&reading->sse, bytes, len);
        return;
    }
    mur_text_add (&reading->body, bytes, len);
    if (reading->form == BODY_UNKNOWN)
        reading->form = form_of (reading, false);
    if (reading->form == BODY_EVENTS)
        mur_sse_feed (&reading->sse, reading->body.data, reading->body.len);
}

/* --- A whole body --- */

/* A list of events, or one value a line, as some gateways make of a stream. */
static bool
take_many (struct reading *reading, const char *text, size_t len)
{
    struct mur_json *list = *text == '[' ? mur_json_parse (text, len) : NULL;
    size_t taken = 0;
    if (list != NULL && mur_json_check (text, len, NULL))
        for (mur_node n = mur_json_first (list, 0); n >= 0; n = mur_json_next (list, n)) {
            size_t item_len;
            const char *item = mur_json_raw (list, n, &item_len);
            taken += take_json (reading, item, item_len, reading->provider->take_event);
        }
    if (list != NULL)
        reading->answer->is_ended = true;
    mur_json_free (list);
    if (*text == '{' && memchr (text, '\n', len) != NULL)
        for (const char *at = text, *end = text + len; at < end;) {
            size_t line_len = strcspn (at, "\n");
            if (! take_json (reading, at, line_len, reading->provider->take_event) &&
                line_len > strspn (at, " \t\r"))
                break;
            taken++;
            at += line_len + 1;
            reading->answer->is_ended = at >= end;
        }
    return taken > 0;
}

/* JSON to its end is a whole answer, whatever word for the end it lacks. */
static void
take_whole (struct reading *reading)
{
    const char *text = reading->body.data != NULL ? reading->body.data : "";
    size_t len = reading->body.len;
    if (len >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0)
        text += 3, len -= 3;
    while (len > 0 && strchr (" \t\r\n", *text) != NULL && *text != '\0')
        text++, len--;
    if (len == 0 || strchr ("{[", *text) == NULL || *text == '\0')
        mur_refusal_of_page (reading->answer, &reading->body, false);
    else if (*text == '{' && take_json (reading, text, len, reading->provider->take_whole))
        reading->answer->is_ended = true;
    else if (! (*text == '[' && take_json (reading, text, len, reading->provider->take_event)) &&
             ! take_many (reading, text, len)) {
        if (mur_json_check (text, len, NULL))
            mur_refusal_of_page (reading->answer, &reading->body, true);
        else
            fail_no_json (reading, text, len);
    }
}

static void
take_refusal (struct reading *reading, const struct mur_http_response *response)
{
    struct mur_text text = { 0 };
    char *advice = mur_http_header (response, "x-should-retry");
    char *place = mur_http_header (response, "location");
    mur_text_utf8 (&text, reading->body.data, reading->body.len);
    mur_refusal_of_status (reading->answer, response->status, &text, advice, place);
    mur_text_free (&text);
    free (advice);
    free (place);
}

/* --- The connection --- */

/* True for a body in a coding nobody asked for, which is told. */
static bool
is_coded (struct reading *reading, const struct mur_http_response *response)
{
    char *coding = mur_http_header (response, "content-encoding");
    bool is_plain = coding == NULL || *coding == '\0' || strcasecmp (coding, "identity") == 0;
    if (! is_plain)
        mur_answer_fail (reading->answer, MUR_TRANSIENT_NO,
                         "the provider's answer is compressed (%.40s), though it was asked not to "
                         "be: something between here and the provider does that",
                         coding);
    free (coding);
    return ! is_plain;
}

static bool
is_event_stream (const struct mur_http_response *response)
{
    static const char name[] = "text/event-stream";
    char *type = mur_http_header (response, "content-type");
    bool is_stream = type != NULL && strncasecmp (type, name, sizeof name - 1) == 0;
    free (type);
    return is_stream;
}

static void
finish (struct reading *reading, const struct mur_http_response *response, bool is_success)
{
    if (! is_success) {
        take_refusal (reading, response);
        return;
    }
    if (reading->form == BODY_UNKNOWN)
        reading->form = form_of (reading, true);
    if (reading->form == BODY_EVENTS)
        mur_sse_end (&reading->sse);
    else if (reading->is_declared && reading->body.len == 0)
        return; /* a stream without an event is one that ended early */
    else
        take_whole (reading);
    if (reading->first.len > 0 && ! reading->answer->is_known) {
        reading->answer->stop_reason = reading->answer->stop_word = NULL;
        mur_refusal_of_page (reading->answer, &reading->first, true);
    }
}

/* True when the connection broke behind the last byte that counts. */
static bool
is_whole_anyway (const struct reading *reading, bool is_success)
{
    const struct mur_sse *sse = &reading->sse;
    if (reading->form == BODY_EVENTS)
        return reading->answer->is_ended || (sse->has_data && sse->line.len == 0 &&
                                             mur_json_check (sse->data.data, sse->data.len, NULL));
    return is_success && reading->body.len > 0 &&
           mur_json_check (reading->body.data, reading->body.len, NULL);
}

/* Reads to the very end, so that the connection serves the next call too. An answer that was
 * already complete stands, however the connection ends. */
static void
read_answer (struct reading *reading, struct mur_http_response *response)
{
    bool is_success = response->status >= 200 && response->status < 300;
    reading->sse = (struct mur_sse){ .take = take_event, .context = reading, .keeps_bytes = true };
    reading->is_declared = is_event_stream (response);
    reading->form = is_success ? BODY_UNKNOWN : BODY_WHOLE;
    char chunk[16384];
    char *error = NULL;
    size_t total = 0;
    long got;
    if (is_success && is_coded (reading, response))
        return;
    while ((got = mur_http_read (response, chunk, sizeof chunk, &error)) > 0) {
        total += (size_t)got;
        if (total > ANSWER_LIMIT_BYTES) {
            mur_answer_fail (reading->answer, MUR_TRANSIENT_NO,
                             "the provider's answer is larger than %u MiB",
                             ANSWER_LIMIT_BYTES >> 20);
            break;
        }
        take_bytes (reading, chunk, (size_t)got);
    }
    if (got == 0 || (got < 0 && is_whole_anyway (reading, is_success)))
        finish (reading, response, is_success);
    if (got < 0 && ! reading->answer->is_ended)
        mur_answer_fail (reading->answer, MUR_TRANSIENT_UNTOLD,
                         "the provider's answer broke off: the connection was lost");
    mur_text_free (&reading->body);
    mur_text_free (&reading->first);
    free (error);
}

/* --- The request --- */

bool
mur_block_is (const struct mur_json *json, mur_node block, const char *type)
{
    return mur_json_is (json, mur_json_get (json, block, "type"), type);
}

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

bool
mur_driver_takes_content (const struct mur_json *json, struct mur_result *out)
{
    mur_node messages = mur_json_get (json, 0, "messages");
    for (mur_node m = mur_json_first (json, messages); m >= 0; m = mur_json_next (json, m)) {
        mur_node content = mur_json_get (json, m, "content");
        for (mur_node b = mur_json_first (json, content); b >= 0; b = mur_json_next (json, b)) {
            char *type = mur_json_text (json, mur_json_get (json, b, "type"));
            bool is_media = mur_is_media (type);
            if (is_media) {
                mur_failed (out,
                            "a message holds content of type \"%.40s\"; this driver sends text and "
                            "tool calls, no images or other media yet",
                            type);
                mur_metadata (out, "transient", "false");
            }
            free (type);
            if (is_media)
                return false;
        }
    }
    return true;
}

void
mur_driver_tools (const struct mur_json *json, struct mur_text *body, const char *open,
                  const char *schema_key, enum mur_schema_form form, const char *close)
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
        mur_text_key (body, schema_key);
        mur_schema_lower (json, mur_json_get (json, t, "parameters"), form, body);
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

char *
mur_driver_cache_marker (const struct mur_json *config, bool by_default)
{
    mur_node cache = mur_json_get (config, 0, "cache");
    char *lifetime = mur_json_text (config, cache);
    struct mur_text marker = { 0 };
    if (lifetime == NULL && ! mur_json_bool (config, cache, by_default))
        return NULL;
    mur_text_puts (&marker, ",\"cache_control\":{\"type\":\"ephemeral\"");
    mur_text_string (&marker, "ttl", lifetime);
    mur_text_puts (&marker, "}");
    free (lifetime);
    return marker.data;
}

/* --- The call --- */

static size_t
gather_headers (const struct mur_provider *provider, const struct mur_json *config,
                struct mur_http_header *headers)
{
    size_t count = 0;
    headers[count++] = (struct mur_http_header){ "content-type", "application/json" };
    headers[count++] = (struct mur_http_header){ "accept", "text/event-stream, application/json" };
    headers[count++] = (struct mur_http_header){ "accept-encoding", "identity" };
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

/* A call's tool and inputs under the names of the runtime's request. */
static void
name_as_the_runtime_does (const struct mur_provider *provider, const struct mur_json *request,
                          struct mur_block *call)
{
    if (call->name == NULL)
        return;
    char *meant = mur_meant_tool (request, call->name);
    if (meant != NULL) {
        free (call->name);
        call->name = meant;
    }
    if (provider->name_inputs != NULL && mur_block_is_whole (call))
        provider->name_inputs (request, call->name, &call->text);
}

void
mur_provider_call (const struct mur_provider *provider, const struct mur_json *request,
                   const struct mur_json *config, const struct mur_text *body,
                   struct mur_result *out)
{
    struct mur_http_header headers[MAX_HEADERS];
    struct mur_http_request call = {
        .url = provider_url (provider, config),
        .headers = headers,
        .header_count = gather_headers (provider, config, headers),
        .body = body->data,
        .body_len = body->len,
    };
    struct mur_http_response response;
    struct mur_answer answer = MUR_ANSWER_INIT (request);
    char *error = NULL;
    if (mur_http_open (&call, &response, &error)) {
        struct reading reading = { .provider = provider, .answer = &answer };
        read_answer (&reading, &response);
        mur_http_close (&response);
    } else {
        mur_refusal_of_connection (&answer, call.url, error);
    }
    for (size_t i = 0; i < answer.count; i++)
        name_as_the_runtime_does (provider, request, &answer.blocks[i]);
    mur_answer_hand_over (&answer, out);
    if (answer.is_misplaced)
        mur_metadata (out, "asked", call.url);
}

#endif
