/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of every form put into one sentence, with whether trying again may help
 * (murmur_refusal.h).
 *
 * Servers put an error's words in a dozen places, its code as a text or a number, and a gateway
 * answers with a page of its own. Always true: the sentence names the provider, the status or code,
 * and quotes what was said, at most 500 bytes of it.
 */
#include "murmur_refusal.h"
#include "murmur_internal.h"

#include <ctype.h>
#include <stdio.h>

#if defined(MUR_ROLE_TOOL)

#define QUOTE_LIMIT_BYTES 500
#define KIND_LIMIT_BYTES  80

/* --- What may pass by itself --- */

static bool
status_is_transient (int64_t status)
{
    return status == 408 || status == 409 || status == 425 || status == 429 ||
           (status >= 500 && status < 600 && status != 501 && status != 505);
}

/* What a server says that has no such page, or another one. */
static bool
is_misplaced_status (unsigned status)
{
    return status == 404 || status == 405 || status == 501 || status / 100 == 3;
}

static enum mur_transient
transient_by_type (const char *type, enum mur_transient otherwise)
{
    static const struct {
        const char *type;
        enum mur_transient transient;
    } types[] = {
        { "insufficient_quota", MUR_TRANSIENT_NO },
        { "billing_error", MUR_TRANSIENT_NO },
        { "api_error", MUR_TRANSIENT_YES },
        { "server_error", MUR_TRANSIENT_YES },
        { "internal_server_error", MUR_TRANSIENT_YES },
        { "internal_error", MUR_TRANSIENT_YES },
        { "internalservererror", MUR_TRANSIENT_YES },
        { "resource_exhausted", MUR_TRANSIENT_YES },
        { "upstream_error", MUR_TRANSIENT_YES },
        { "bad_gateway", MUR_TRANSIENT_YES },
    };
    struct mur_text plain = { 0 };
    for (const char *c = type != NULL ? type : ""; *c != '\0'; c++)
        mur_text_add (&plain, (const char[]){ (char)tolower ((unsigned char)*c) }, 1);
    static const char *const parts[] = { "overloaded", "rate_limit",  "ratelimit",        "throttl",
                                         "timeout",    "unavailable", "too_many_requests" };
    enum mur_transient found = otherwise;
    for (size_t i = 0; plain.len > 0 && i < sizeof parts / sizeof *parts; i++)
        if (strstr (plain.data, parts[i]) != NULL)
            found = MUR_TRANSIENT_YES;
    for (size_t i = 0; plain.len > 0 && i < sizeof types / sizeof *types; i++)
        if (strcmp (plain.data, types[i].type) == 0)
            found = types[i].transient;
    mur_text_free (&plain);
    return found;
}

/* --- An error's words --- */

struct refusal {
    char *type;
    char *code; /* a number is written out */
    char *message;
    int64_t status; /* the code, where it is an HTTP status; 0: none */
};

static void
refusal_clear (struct refusal *r)
{
    free (r->type);
    free (r->code);
    free (r->message);
}

/* A text, or a number's digits. */
static char *
word_of (const struct mur_json *json, mur_node node)
{
    if (mur_json_kind (json, node) != MUR_JSON_NUMBER)
        return mur_json_text (json, node);
    size_t len;
    const char *raw = mur_json_raw (json, node, &len);
    return copy_bytes (raw, len);
}

static char *
first_word (const struct mur_json *json, mur_node from, const char *const *keys)
{
    char *word = NULL;
    for (; *keys != NULL && (word == NULL || *word == '\0'); keys++) {
        free (word);
        word = word_of (json, mur_json_get (json, from, *keys));
    }
    return word;
}

/* An error inside an error: some gateways wrap what they were told. */
#define PLACES_MAX 4

static mur_node
inner_place (const struct mur_json *json, mur_node at)
{
    static const char *const keys[] = { "error", "errors", "detail", "Error", "response", NULL };
    for (const char *const *key = keys; *key != NULL; key++) {
        mur_node inner = mur_json_get (json, at, *key);
        if (mur_json_kind (json, inner) == MUR_JSON_ARRAY)
            inner = mur_json_first (json, inner);
        if (strcmp (*key, "response") == 0)
            inner = mur_json_get (json, inner, "error");
        if (mur_json_kind (json, inner) == MUR_JSON_OBJECT)
            return inner;
    }
    return -1;
}

/* What is looked into: `error`, the first of `errors`, of a list, of `detail`, or the answer
 * itself. */
static mur_node
place_of (const struct mur_json *json)
{
    mur_node at = 0,
             inner = mur_json_kind (json, 0) == MUR_JSON_ARRAY ? mur_json_first (json, 0) : 0;
    for (int depth = 0; inner >= 0 && depth < PLACES_MAX; depth++) {
        at = inner;
        inner = inner_place (json, at);
    }
    return at;
}

static struct refusal
read_refusal (const struct mur_json *json)
{
    static const char *const messages[] = { "message",     "msg",   "Message",
                                            "detail",      "error", "error_msg",
                                            "description", "title", NULL };
    static const char *const types[] = { "type", "__type", "status", NULL };
    static const char *const codes[] = { "code",       "error_code", "status_code",
                                         "statusCode", "http_code",  NULL };
    static const char *const statuses[] = { "code",      "status",      "status_code", "statusCode",
                                            "http_code", "http_status", NULL };
    mur_node from = place_of (json);
    struct refusal r = { .type = first_word (json, from, types),
                         .code = first_word (json, from, codes),
                         .message = first_word (json, from, messages) };
    if (r.type != NULL && (strcmp (r.type, "error") == 0 || *r.type == '\0')) {
        free (r.type);
        r.type = NULL;
    }
    for (const char *const *key = statuses; r.status == 0 && *key != NULL; key++) {
        char *word = word_of (json, mur_json_get (json, from, *key));
        int64_t number = word != NULL ? strtoll (word, NULL, 10) : 0;
        r.status = number >= 300 && number < 600 ? number : 0;
        free (word);
    }
    return r;
}

/* What the error's code, or else its type, says of trying again. */
static enum mur_transient
refusal_transient (const struct refusal *r, enum mur_transient otherwise)
{
    enum mur_transient by_status = status_is_transient (r->status) ? MUR_TRANSIENT_YES : otherwise;
    return transient_by_type (r->code, transient_by_type (r->type, by_status));
}

/* Fails the answer with `<what> (<kind>): <message>`. */
static void
fail_refused (struct mur_answer *answer, const char *what, const struct refusal *r,
              enum mur_transient transient)
{
    struct mur_text sentence = { 0 };
    mur_text_puts (&sentence, what);
    const char *kind = r->code != NULL && *r->code != '\0' ? r->code : r->type;
    if (kind != NULL && *kind != '\0')
        mur_text_printf (&sentence, " (%.*s)",
                         (int)mur_utf8_prefix (kind, strlen (kind), KIND_LIMIT_BYTES), kind);
    const char *message = r->message;
    if (message != NULL && *message != '\0')
        mur_text_printf (&sentence, ": %.*s",
                         (int)mur_utf8_prefix (message, strlen (message), QUOTE_LIMIT_BYTES),
                         message);
    mur_answer_fail (answer, transient, "%s", sentence.data);
    mur_text_free (&sentence);
}

/* --- Errors with a success's status --- */

/* True for an error that stands where an answer should. */
static bool
is_error (const struct mur_json *json)
{
    static const char *const answers[] = {
        "choices", "content", "output", "delta", "response", NULL
    };
    static const char *const words[] = { "message", "msg", "error_msg", NULL };
    mur_node top = mur_json_kind (json, 0) == MUR_JSON_ARRAY ? mur_json_first (json, 0) : 0;
    mur_node error = mur_json_get (json, top, "error");
    enum mur_json_kind kind = mur_json_kind (json, error);
    if (kind == MUR_JSON_OBJECT ? mur_json_count (json, error) > 0 : kind == MUR_JSON_STRING)
        return true;
    if (mur_json_count (json, mur_json_get (json, mur_json_get (json, top, "response"), "error")) >
            0 ||
        mur_json_is (json, mur_json_get (json, top, "type"), "error") ||
        mur_json_is (json, mur_json_get (json, top, "object"), "error"))
        return true;
    if (mur_json_count (json, mur_json_get (json, top, "errors")) > 0)
        return true;
    for (const char *const *key = answers; *key != NULL; key++)
        if (mur_json_get (json, top, *key) >= 0)
            return false;
    if (mur_json_kind (json, mur_json_get (json, top, "detail")) != MUR_JSON_ABSENT)
        return true;
    for (const char *const *key = words; *key != NULL; key++)
        if (mur_json_kind (json, mur_json_get (json, top, *key)) == MUR_JSON_STRING)
            return mur_json_get (json, top, "type") < 0;
    return false;
}

bool
mur_refusal_is (struct mur_answer *answer, const struct mur_json *json)
{
    if (! is_error (json))
        return false;
    struct refusal r = read_refusal (json);
    fail_refused (answer, "the provider broke off", &r, refusal_transient (&r, MUR_TRANSIENT_NO));
    refusal_clear (&r);
    return true;
}

/* --- Pages --- */

static bool
is_page (const struct mur_text *body)
{
    const char *at = body->data != NULL ? body->data : "";
    at += strspn (at, " \t\r\n");
    return *at == '<';
}

/* The title of a page, in one line; NULL: it has none. */
static char *
title_of (const struct mur_text *body)
{
    const char *at = body->data;
    while (at != NULL && (at = strchr (at, '<')) != NULL && strncasecmp (at, "<title", 6) != 0)
        at++;
    at = at != NULL ? strchr (at, '>') : NULL;
    if (at == NULL)
        return NULL;
    struct mur_text title = { 0 };
    for (at++; *at != '\0' && *at != '<'; at++)
        if (! isspace ((unsigned char)*at))
            mur_text_add (&title, at, 1);
        else if (title.len > 0 && title.data[title.len - 1] != ' ')
            mur_text_puts (&title, " ");
    while (title.len > 0 && title.data[title.len - 1] == ' ')
        title.data[--title.len] = '\0';
    return title.data;
}

static char *
first_line (const struct mur_text *body)
{
    const char *at = body->data != NULL ? body->data : "";
    at += strspn (at, " \t\r\n");
    return copy_bytes (at, strcspn (at, "\r\n"));
}

/* The JSON of a body: itself, or the data of its first event. */
static struct mur_json *
json_of (const struct mur_text *body)
{
    const char *text = body->data != NULL ? body->data : "";
    struct mur_json *json = mur_json_parse (text, strlen (text));
    const char *data = json == NULL ? strstr (text, "data:") : NULL;
    if (data != NULL)
        json = mur_json_parse (data + 5, strcspn (data + 5, "\r\n"));
    return json;
}

void
mur_refusal_of_status (struct mur_answer *answer, unsigned status, const struct mur_text *body,
                       const char *advice, const char *place)
{
    struct mur_json *json = json_of (body);
    struct refusal r = read_refusal (json);
    enum mur_transient transient =
        status_is_transient (status) ? refusal_transient (&r, MUR_TRANSIENT_YES) : MUR_TRANSIENT_NO;
    if (r.message == NULL && is_page (body))
        r.message = title_of (body);
    if (r.message == NULL && body->len > 0 && (json == NULL || r.code == NULL))
        r.message = first_line (body);
    if (r.status == (int64_t)status) { /* said already */
        free (r.code);
        r.code = NULL;
    }
    if (advice != NULL && (strcmp (advice, "true") == 0 || strcmp (advice, "false") == 0))
        transient = *advice == 't' ? MUR_TRANSIENT_YES : MUR_TRANSIENT_NO;
    bool is_moved = status >= 300 && status < 400 && place != NULL;
    char *what = mur_format ("the provider answered %u%s%.200s", status,
                             is_moved ? ", a redirect to " : "", is_moved ? place : "");
    fail_refused (answer, what, &r, transient);
    answer->is_misplaced = is_misplaced_status (status);
    free (what);
    refusal_clear (&r);
    mur_json_free (json);
}

void
mur_refusal_of_page (struct mur_answer *answer, const struct mur_text *body, bool is_json)
{
    char *title = is_page (body) ? title_of (body) : NULL;
    char *line = title == NULL && ! is_page (body) ? first_line (body) : NULL;
    struct mur_text sentence = { 0 };
    mur_text_printf (&sentence, "the provider's answer is %s",
                     is_json ? "JSON, but of another protocol"
                             : "neither JSON nor a stream of events");
    if (is_page (body))
        mur_text_puts (&sentence, " but a web page");
    else if (body->len == 0)
        mur_text_puts (&sentence, "; it is empty");
    const char *quote = title != NULL ? title : line;
    if (quote != NULL && *quote != '\0')
        mur_text_printf (&sentence, " (\"%.*s\")", (int)mur_utf8_prefix (quote, strlen (quote), 80),
                         quote);
    mur_text_puts (&sentence, ": is the endpoint right?");
    mur_answer_fail (answer, MUR_TRANSIENT_NO, "%s", sentence.data);
    answer->is_misplaced = true;
    mur_text_free (&sentence);
    free (title);
    free (line);
}

/* The address is the gateway's inside the sandbox, which says nothing to anyone. */
void
mur_refusal_of_connection (struct mur_answer *answer, const char *url, const char *error)
{
    size_t url_len = strlen (url);
    bool has_url = strncmp (error, url, url_len) == 0 && error[url_len] == ':';
    const char *why = has_url ? error + url_len + 2 : error;
    bool is_slow =
        strcmp (why, "response timeout") == 0 || strcmp (why, "connection read timeout") == 0;
    bool is_untrusted = strcmp (why, "TLS certificate error") == 0;
    bool is_untold = strcmp (why, "internal error") == 0; /* the runtime adds what it knows */
    mur_answer_fail (answer, MUR_TRANSIENT_UNTOLD, "%s%s%s%s",
                     is_slow ? "the provider did not answer in time"
                             : "the provider cannot be reached",
                     is_untold ? "" : ": ", is_untold ? "" : why,
                     is_untrusted ? " (its certificate is not trusted; SSL_CERT_FILE names a file "
                                    "of further authorities)"
                                  : "");
}

#endif
