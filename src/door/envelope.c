/* SPDX-License-Identifier: Apache-2.0 */
#include "door/envelope.h"
#include "base/json_write.h"

#include "base/alloc.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct {
    int code;
    const char *text;
    const char *reason; /* NULL: a standard code, without data */
    const char *domain;
} errors[] = {
    { RPC_PARSE, "Invalid JSON payload", NULL, NULL },
    { RPC_INVALID_REQUEST, "Request payload validation error", NULL, NULL },
    { RPC_METHOD_NOT_FOUND, "Method not found", NULL, NULL },
    { RPC_INVALID_PARAMS, "Invalid parameters", NULL, NULL },
    { RPC_INTERNAL, "Internal error", NULL, NULL },
    { RPC_TASK_NOT_FOUND, "Task not found", "TASK_NOT_FOUND", "a2a-protocol.org" },
    { RPC_TASK_NOT_CANCELABLE, "Task cannot be canceled", "TASK_NOT_CANCELABLE",
      "a2a-protocol.org" },
    { RPC_PUSH_NOT_SUPPORTED, "Push notifications are not supported",
      "PUSH_NOTIFICATION_NOT_SUPPORTED", "a2a-protocol.org" },
    { RPC_UNSUPPORTED_OPERATION, "This operation is not supported", "UNSUPPORTED_OPERATION",
      "a2a-protocol.org" },
    { RPC_CONTENT_TYPE_NOT_SUPPORTED, "Content type not supported", "CONTENT_TYPE_NOT_SUPPORTED",
      "a2a-protocol.org" },
    { RPC_VERSION_NOT_SUPPORTED, "A2A version not supported", "VERSION_NOT_SUPPORTED",
      "a2a-protocol.org" },
    { RPC_COMPLETION_MISADDRESSED, "This completion is addressed to another session",
      "COMPLETION_MISADDRESSED", "murmur.nexus" },
    { RPC_COMPLETION_NOT_AWAITED, "No delegation waits for this completion",
      "COMPLETION_NOT_AWAITED", "murmur.nexus" },
};

/* --- the id as it was written --- */

static const char *
skip_blanks (const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    return p;
}

static const char *
skip_string (const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

/* Past one value of well-formed JSON; of anything else, somewhere before its end. */
static const char *
skip_value (const char *p)
{
    int depth = 0;
    while (*p && (depth > 0 || ! strchr (",}]", *p))) {
        if (*p == '"')
            p = skip_string (p);
        else {
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
            p++;
        }
    }
    return p;
}

/* Past one byte, unless the text ends here. */
static const char *
skip_byte (const char *p)
{
    return *p ? p + 1 : p;
}

/* Where the value of the top-level member "id" of a well-formed object lies, *len 0 when there is
 * none. The last one counts. Of malformed text it is anything within it. */
static const char *
id_span (const char *json, size_t *len)
{
    const char *found = json, *found_end = found;
    const char *p = skip_blanks (skip_byte (skip_blanks (json)));
    while (*p == '"') {
        bool is_id = strncmp (p, "\"id\"", 4) == 0;
        p = skip_blanks (skip_string (p));
        p = skip_blanks (skip_byte (p));
        const char *end = skip_value (p);
        if (is_id) {
            found = p;
            found_end = end;
        }
        p = skip_blanks (end);
        if (*p == ',')
            p = skip_blanks (p + 1);
    }
    while (found_end > found && strchr (" \t\r\n", found_end[-1]))
        found_end--;
    *len = (size_t)(found_end - found);
    return found;
}

static char *
id_text (const char *json)
{
    size_t len;
    const char *at = id_span (json, &len);
    return x_strndup (at, len);
}

static bool
is_integer_id (const char *text)
{
    char *end;
    const char *digits = *text == '-' ? text + 1 : text;
    if (! isdigit ((unsigned char)*digits))
        return false;
    errno = 0;
    if (*text == '-')
        (void)strtoll (text, &end, 10);
    else
        (void)strtoull (text, &end, 10);
    return *end == '\0' && errno == 0;
}

/* --- reading --- */

/* Of an id only the text is kept, so it may be larger than what the parser takes: it is read as if
 * it were 0. Any other integer beyond 64 bits signed is read as a real. */
static json_t *
parse (const char *text, size_t len)
{
    json_error_t fault;
    /* A key given twice would be one thing to us and another to a filter before us. */
    size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;
    json_t *value = json_loadb (text, len, flags, &fault);
    if (value || json_error_code (&fault) != json_error_numeric_overflow)
        return value;
    size_t id_len;
    const char *id = id_span (text, &id_len);
    if (id_len > 1 && strspn (id, "-0123456789") >= id_len) {
        _cleanup_free_ char *copy = x_strndup (text, len);
        memset (copy + (id - text), ' ', id_len);
        copy[id - text] = '0';
        value = json_loadb (copy, len, flags, &fault);
    }
    return value ? value : json_loadb (text, len, flags | JSON_DECODE_INT_AS_REAL, &fault);
}

int
envelope_read (const char *body, size_t len, struct envelope *out)
{
    *out = (struct envelope){ .id = x_strdup ("null") };
    _cleanup_json_ json_t *clean = json_string_lossy (body, len);
    const char *text = json_string_value (clean);
    _cleanup_free_ char *mended = NULL;
    _cleanup_json_ json_t *request = parse (text, json_string_length (clean));
    if (! request) {
        mended = x_memdup (text, json_string_length (clean) + 1);
        json_mend_escapes (mended, json_string_length (clean));
        text = mended;
        request = parse (text, json_string_length (clean));
    }
    if (! request)
        return RPC_PARSE;
    if (! json_is_object (request))
        return RPC_INVALID_REQUEST;
    _cleanup_free_ char *id = id_text (text);
    bool has_id = *id == '"' || is_integer_id (id);
    if (has_id) {
        free (out->id);
        out->id = steal_ptr (&id);
    }
    const char *method = json_get_string (request, "method");
    if (! has_id || ! method || ! str_eq (json_get_string (request, "jsonrpc"), "2.0"))
        return RPC_INVALID_REQUEST;
    out->method = x_strdup (method);
    json_t *params = json_object_get (request, "params");
    out->params = params ? json_incref (params) : json_object ();
    return 0;
}

void
envelope_clear (struct envelope *e)
{
    free (e->id);
    free (e->method);
    json_decref (e->params);
    *e = (struct envelope){ 0 };
}

char *
envelope_result (const char *id, const char *result)
{
    return x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", id, result);
}

char *
envelope_error (const char *id, int code, const char *message, json_t *metadata)
{
    size_t i = 0;
    while (errors[i].code != code)
        i++;
    _cleanup_json_ json_t *error = json_object ();
    json_object_set_new (error, "code", json_integer (code));
    json_set_string (error, "message", message ? message : errors[i].text);
    if (errors[i].reason) {
        json_t *info = json_object (), *data = json_array ();
        json_set_string (info, "@type", "type.googleapis.com/google.rpc.ErrorInfo");
        json_set_string (info, "domain", errors[i].domain);
        json_object_set_new (info, "metadata", metadata ? metadata : json_object ());
        json_set_string (info, "reason", errors[i].reason);
        json_array_append_new (data, info);
        json_object_set_new (error, "data", data);
    } else
        json_decref (metadata);
    _cleanup_free_ char *text = json_text (error, JSON_TEXT_ORDERED);
    return x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}", id, text);
}
