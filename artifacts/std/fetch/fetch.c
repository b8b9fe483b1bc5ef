/* SPDX-License-Identifier: Apache-2.0
 *
 * std/fetch: reads what an address holds, as text a model can use, or saves it to a file
 * (README.md says its input and config).
 *
 * Which addresses may be reached is the runtime's to decide, at every step of a redirect. Always
 * true: no more is read than the limit, and no answer is longer than its bound without saying so.
 */
#define _GNU_SOURCE /* strcasestr */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "html.h"
#include "murmur_sdk.h"

#define SIZE_LIMIT_BYTES   (4u << 20)
#define ANSWER_LIMIT_BYTES (64u << 10)
#define REDIRECT_LIMIT     5
#define QUOTE_LIMIT_BYTES  500
#define MAX_HEADERS        16

struct call {
    const struct mur_json *input;
    const struct mur_json *config;
    struct mur_result *out;
    char *url; /* the one asked last */
    uint16_t status;
    char *type; /* lower case, without parameters; "" when the server tells none */
    char *charset;
    struct mur_text body;
    bool is_cut;
};

static mur_node
argument (const struct call *call, const char *name)
{
    return mur_json_get (call->input, 0, name);
}

static size_t
size_limit (const struct call *call)
{
    int64_t limit =
        mur_json_int (call->config, mur_json_get (call->config, 0, "max_bytes"), SIZE_LIMIT_BYTES);
    return limit < 1 ? SIZE_LIMIT_BYTES : (size_t)limit;
}

/* --- Types --- */

/* Media types are compared by their beginning or, with a leading *, by their end. */
static bool
type_fits (const char *type, const char *pattern)
{
    size_t len = strlen (type), pattern_len = strlen (pattern);
    if (*pattern == '*')
        return len >= pattern_len - 1 && strcmp (type + len - (pattern_len - 1), pattern + 1) == 0;
    return strncmp (type, pattern, pattern_len) == 0;
}

static bool
is_text_type (const char *type)
{
    static const char *const patterns[] = {
        "text/",
        "application/json",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/toml",
        "*+json",
        "*+xml",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (type_fits (type, patterns[i]))
            return true;
    return false;
}

/* `config.types`, when given, names all that may be fetched. */
static bool
is_allowed_type (const struct call *call)
{
    mur_node types = mur_json_get (call->config, 0, "types");
    bool is_allowed = types < 0;
    for (mur_node n = mur_json_first (call->config, types); n >= 0 && ! is_allowed;
         n = mur_json_next (call->config, n)) {
        char *pattern = mur_json_text (call->config, n);
        is_allowed = pattern != NULL && type_fits (call->type, pattern);
        free (pattern);
    }
    return is_allowed;
}

/* Splits `text/html; charset="utf-8"`. */
static void
take_type (struct call *call, const char *header)
{
    header = header != NULL ? header : "";
    size_t len = strcspn (header, "; \t");
    call->type = mur_format ("%.*s", (int)len, header);
    call->charset = NULL;
    const char *charset = strcasestr (header + len, "charset=");
    if (charset != NULL) {
        charset += strlen ("charset=");
        charset += *charset == '"';
        call->charset = mur_format ("%.*s", (int)strcspn (charset, "\"; \t"), charset);
    }
    for (char *c = call->type; *c != '\0'; c++)
        *c = (char)tolower ((unsigned char)*c);
}

static bool
is_html (const struct call *call)
{
    return strcmp (call->type, "text/html") == 0 ||
           strcmp (call->type, "application/xhtml+xml") == 0;
}

/* --- Characters --- */

/* A page may name its characters in its head. */
static void
find_charset (struct call *call)
{
    if (call->charset != NULL || ! is_html (call))
        return;
    char *head =
        mur_format ("%.*s", call->body.len < 1024 ? (int)call->body.len : 1024, call->body.data);
    const char *found = strcasestr (head, "charset=");
    if (found != NULL) {
        found += strlen ("charset=");
        found += *found == '"' || *found == '\'';
        call->charset = mur_format ("%.*s", (int)strcspn (found, "\"'; />"), found);
    }
    free (head);
}

/* The body as UTF-8; false once the refusal is told. Without a word about it, what is no UTF-8 is
 * what browsers take it for. */
static bool
decode (struct call *call, struct mur_text *text)
{
    static const char *const western[] = { "iso-8859-1", "latin1", "windows-1252", "cp1252",
                                           "us-ascii",   "ascii",  "iso-8859-15" };
    find_charset (call);
    const char *name = call->charset != NULL ? call->charset : "";
    bool is_western = *name == '\0' && ! mur_utf8_valid (call->body.data, call->body.len);
    for (size_t i = 0; i < sizeof western / sizeof *western; i++)
        is_western = is_western || strcasecmp (name, western[i]) == 0;
    if (! is_western && *name != '\0' && strcasecmp (name, "utf-8") != 0 &&
        strcasecmp (name, "utf8") != 0) {
        mur_failed (call->out, "%s is written in %s, which is not read here", call->url, name);
        return false;
    }
    if (! is_western) {
        mur_text_utf8 (text, call->body.data, call->body.len);
        return true;
    }
    for (size_t i = 0; i < call->body.len; i++)
        mur_text_character (text, windows_1252 ((unsigned char)call->body.data[i]));
    return true;
}

/* --- Showing --- */

/* A part of the text, from `offset` on, and how to get the rest. */
static void
show (struct call *call, const struct mur_text *text)
{
    int64_t wanted = mur_json_int (call->input, argument (call, "offset"), 0);
    size_t from = wanted < 0 ? 0 : (size_t)wanted;
    if (from > text->len)
        from = text->len;
    while (from > 0 && from < text->len && ((unsigned char)text->data[from] & 0xc0) == 0x80)
        from--;
    size_t left = text->len - from;
    size_t len = mur_utf8_prefix (text->data + from, left, ANSWER_LIMIT_BYTES);
    struct mur_text answer = { 0 };
    mur_text_add (&answer, text->data + from, len);
    if (len < left)
        mur_text_printf (&answer, "\n[cut: go on with offset %zu, of %zu]\n", from + len,
                         text->len);
    else if (call->is_cut)
        mur_text_printf (&answer, "\n[no more than %zu bytes are read]\n", size_limit (call));
    else if (answer.len == 0)
        mur_text_printf (&answer, "[%s]\n", from > 0 ? "nothing beyond this offset" : "empty");
    call->out->truncated = len < left || call->is_cut;
    mur_passed_text (call->out, &answer);
}

static void
answer_text (struct call *call)
{
    struct mur_text decoded = { 0 }, text = { 0 };
    bool is_text = *call->type != '\0' ? is_text_type (call->type)
                                       : memchr (call->body.data, '\0', call->body.len) == NULL;
    if (! is_text) {
        mur_failed (call->out, "%s is %s, no text; give save_as to keep it in a file", call->url,
                    *call->type != '\0' ? call->type : "of an unknown type");
        return;
    }
    if (! decode (call, &decoded))
        return;
    bool is_raw = mur_json_bool (call->input, argument (call, "raw"), false);
    if (is_html (call) && ! is_raw) {
        html_to_text (decoded.data != NULL ? decoded.data : "", decoded.len, call->url, &text);
        show (call, &text);
    } else {
        show (call, &decoded);
    }
    mur_text_free (&decoded);
    mur_text_free (&text);
}

static void
save (struct call *call, const char *path)
{
    char *error = NULL;
    if (call->is_cut) {
        mur_failed (call->out, "%s is larger than %zu bytes; nothing was saved", call->url,
                    size_limit (call));
    } else if (! mur_file_write (path, call->body.data, call->body.len, true, &error)) {
        mur_failed (call->out, "%s", error);
    } else {
        mur_passed (call->out, "saved %s: %zu bytes%s%s", path, call->body.len,
                    *call->type != '\0' ? " of " : "", call->type);
        mur_metadata (call->out, "state_effect", "mutate");
        mur_metadata (call->out, "resource_id", path);
    }
    free (error);
}

/* --- Asking --- */

static size_t
gather_headers (const struct call *call, struct mur_http_header *headers)
{
    size_t count = 0;
    headers[count++] = (struct mur_http_header){ "user-agent", "murmur-fetch/0.1" };
    headers[count++] = (struct mur_http_header){
        "accept", "text/html, text/plain, application/json, application/xml;q=0.9, */*;q=0.5"
    };
    mur_node more = mur_json_get (call->config, 0, "headers");
    for (mur_node n = mur_json_first (call->config, more); n >= 0 && count < MAX_HEADERS;
         n = mur_json_next (call->config, n)) {
        char *value = mur_json_text (call->config, n);
        if (value != NULL)
            headers[count++] = (struct mur_http_header){ mur_json_key (call->config, n), value };
    }
    return count;
}

static void
tell_failure (struct call *call, const char *error)
{
    if (strstr (error, "HTTP-request-denied") != NULL)
        mur_failed (call->out, "%s may not be reached: it is not in this tool's network.allow",
                    call->url);
    else
        mur_failed (call->out, "%s", error);
}

static bool
read_body (struct call *call, struct mur_http_response *response)
{
    char chunk[16384];
    char *error = NULL;
    size_t limit = size_limit (call);
    long got;
    while ((got = mur_http_read (response, chunk, sizeof chunk, &error)) > 0) {
        size_t room = limit - call->body.len;
        mur_text_add (&call->body, chunk, (size_t)got < room ? (size_t)got : room);
        call->is_cut = (size_t)got > room;
        if (call->is_cut)
            break;
    }
    if (got < 0)
        mur_failed (call->out, "%s: %s", call->url, error);
    free (error);
    return got >= 0;
}

/* One request. Returns the address it leads on to, or NULL when this is the end of it. */
static char *
ask (struct call *call, bool *is_read)
{
    struct mur_http_header headers[MAX_HEADERS];
    struct mur_http_request request = { .url = call->url,
                                        .headers = headers,
                                        .header_count = gather_headers (call, headers) };
    struct mur_http_response response;
    char *error = NULL, *next = NULL;
    *is_read = false;
    if (! mur_http_open (&request, &response, &error)) {
        tell_failure (call, error);
        return NULL;
    }
    call->status = response.status;
    char *place = response.status >= 301 && response.status <= 308 && response.status != 304
                      ? mur_http_header (&response, "location")
                      : NULL;
    if (place != NULL) {
        next = url_resolve (call->url, place);
    } else {
        char *type = mur_http_header (&response, "content-type");
        take_type (call, type);
        if (response.status < 300 && ! is_allowed_type (call))
            mur_failed (call->out, "%s is %s, which this tool may not fetch (config.types)",
                        call->url, *call->type != '\0' ? call->type : "of an unknown type");
        else
            *is_read = read_body (call, &response);
        free (type);
    }
    mur_http_close (&response);
    free (place);
    return next;
}

static void
refuse_status (struct call *call)
{
    struct mur_text decoded = { 0 }, text = { 0 };
    mur_text_utf8 (&decoded, call->body.data, call->body.len);
    if (is_html (call))
        html_to_text (decoded.data != NULL ? decoded.data : "", decoded.len, call->url, &text);
    else
        mur_text_add (&text, decoded.data, decoded.len);
    size_t len = text.len > 0 ? mur_utf8_prefix (text.data, text.len, QUOTE_LIMIT_BYTES) : 0;
    mur_failed (call->out, "%s answered %u%s%.*s", call->url, call->status, len > 0 ? ":\n" : "",
                (int)len, len > 0 ? text.data : "");
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct call call = { .input = in->json, .config = mur_config (), .out = out };
    char *path = mur_json_text (call.input, argument (&call, "save_as"));
    call.url = mur_json_text (call.input, argument (&call, "url"));
    if (call.url == NULL || *call.url == '\0') {
        mur_failed (out, "url is needed, an absolute http or https address");
        return;
    }
    bool is_read = false;
    for (int i = 0;; i++) {
        char *next = ask (&call, &is_read);
        if (next == NULL)
            break;
        if (i == REDIRECT_LIMIT) {
            mur_failed (out, "%s leads on more than %d times", call.url, REDIRECT_LIMIT);
            return;
        }
        call.url = next;
    }
    if (! is_read)
        return;
    if (call.body.data == NULL)
        mur_text_puts (&call.body, "");
    if (call.status < 200 || call.status > 299)
        refuse_status (&call);
    else if (path != NULL && *path != '\0')
        save (&call, path);
    else
        answer_text (&call);
    if (out->metadata_count == 0)
        mur_metadata (out, "state_effect", "read");
}
