/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/headers.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define PREFIX     "=?base64?"
#define SUFFIX     "?="
#define PARAM      "Mcp-Param-"
#define DEPTH_MOST 32

/* Owned; NULL: malformed. */
static char *
decoded (const char *value)
{
    size_t len = strlen (value);
    if (! str_starts (value, PREFIX) || ! str_ends (value, SUFFIX) ||
        len < strlen (PREFIX) + strlen (SUFFIX))
        return x_strdup (value);
    size_t out_len, encoded = len - strlen (PREFIX) - strlen (SUFFIX);
    if (encoded % 4) /* padded, in a header */
        return NULL;
    unsigned char *bytes = base64_decode (value + strlen (PREFIX), encoded, &out_len);
    if (bytes && (strlen ((char *)bytes) != out_len || ! utf8_is_valid ((char *)bytes, out_len))) {
        free (bytes);
        return NULL;
    }
    return (char *)bytes;
}

static bool
is_plain (const char *text)
{
    size_t len = strlen (text);
    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return ! len || (text[0] != ' ' && text[len - 1] != ' ' && ! str_starts (text, PREFIX));
}

char *
mcp_header_value (const char *text)
{
    if (is_plain (text))
        return x_strdup (text);
    _cleanup_free_ char *encoded = base64_encode (text, strlen (text));
    return x_asprintf (PREFIX "%s" SUFFIX, encoded);
}

/* --- x-mcp-header --- */

static bool
is_token (const char *name)
{
    for (const char *p = name; *p; p++)
        if (! isalnum ((unsigned char)*p) && ! strchr ("!#$%&'*+-.^_`|~", *p))
            return false;
    return name[0] != '\0';
}

struct walk {
    mcp_param_fn *fn;
    void *ctx;
    struct strv seen; /* header names, lower case */
};

static bool
visit_one (struct walk *w, const json_t *annotation, const json_t *property, const json_t *value)
{
    const char *name = json_string_value (annotation);
    const char *type = json_get_string (property, "type");
    if (! name || ! is_token (name) ||
        ! (str_eq (type, "string") || str_eq (type, "integer") || str_eq (type, "boolean")))
        return false;
    char *lower = x_strdup (name);
    str_lower (lower);
    bool is_twice = strv_contains (&w->seen, lower);
    strv_take (&w->seen, lower);
    if (is_twice)
        return false;
    _cleanup_free_ char *header = x_asprintf (PARAM "%s", name);
    if (w->fn)
        w->fn (w->ctx, header, value);
    return true;
}

/* An annotation below anything but `properties` makes the tool invalid. */
static bool
holds_annotation (const json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    if (depth > DEPTH_MOST)
        return false;
    if (json_is_array (value)) {
        json_array_foreach (value, i, member) if (holds_annotation (member, depth + 1)) return true;
        return false;
    }
    if (json_object_get (value, "x-mcp-header"))
        return true;
    json_object_foreach ((json_t *)(uintptr_t)value, key,
                         member) if (holds_annotation (member, depth + 1)) return true;
    return false;
}

static bool
walk_schema (struct walk *w, const json_t *schema, const json_t *arguments, unsigned depth)
{
    const char *key, *name;
    json_t *member, *property;
    if (depth > DEPTH_MOST)
        return true;
    json_object_foreach ((json_t *)(uintptr_t)schema, key, member)
    {
        if (strcmp (key, "properties") != 0) {
            if (strcmp (key, "x-mcp-header") != 0 && holds_annotation (member, depth))
                return false;
            continue;
        }
        json_object_foreach (member, name, property)
        {
            const json_t *value = json_object_get (arguments, name);
            const json_t *annotation = json_object_get (property, "x-mcp-header");
            if (annotation && ! visit_one (w, annotation, property, value))
                return false;
            if (! walk_schema (w, property, value, depth + 1))
                return false;
        }
    }
    return true;
}

bool
mcp_params_visit (const json_t *schema, const json_t *arguments, mcp_param_fn *fn, void *ctx)
{
    struct walk w = { .fn = fn, .ctx = ctx };
    bool is_good =
        ! json_object_get (schema, "x-mcp-header") && walk_schema (&w, schema, arguments, 0);
    strv_free (&w.seen);
    return is_good;
}

/* --- the server's check --- */

struct check {
    mcp_header_fn *header;
    const void *ctx;
    struct mcp_answer *no;
    bool is_bad;
};

static bool
mismatch (struct check *c, const char *name, const char *what)
{
    c->is_bad = true;
    return mcp_refuse (c->no, MCP_HEADER_MISMATCH, "header %s %s", name, what);
}

static bool
must_be (struct check *c, const char *name, const char *wanted)
{
    const char *value = c->header (c->ctx, name);
    if (! value)
        return mismatch (c, name, "is missing");
    _cleanup_free_ char *text = decoded (value);
    if (! text)
        return mismatch (c, name, "is malformed");
    return str_eq (text, wanted) || mismatch (c, name, "differs from the body");
}

static void
check_param (void *ctx, const char *name, const json_t *value)
{
    struct check *c = ctx;
    const char *sent = c->header (c->ctx, name);
    if (c->is_bad || (! sent && (! value || json_is_null (value))))
        return;
    _cleanup_free_ char *text = sent ? decoded (sent) : NULL;
    if (! text) {
        mismatch (c, name, sent ? "is malformed" : "is missing");
        return;
    }
    bool is_equal = false;
    char *end;
    if (json_is_string (value))
        is_equal = str_eq (text, json_string_value (value));
    else if (json_is_boolean (value))
        is_equal = str_eq (text, json_is_true (value) ? "true" : "false");
    else if (json_is_number (value))
        is_equal = strtod (text, &end) == json_number_value (value) && end != text && ! *end;
    if (! is_equal)
        mismatch (c, name, "differs from the body");
}

bool
mcp_headers_match (const struct mcp_request *r, const json_t *schema, mcp_header_fn *header,
                   const void *ctx, struct mcp_answer *no)
{
    struct check c = { header, ctx, no, false };
    const char *named_by = r->method->named_by;
    const char *name = named_by ? json_get_string (r->message.params, named_by) : NULL;
    if (! must_be (&c, "MCP-Protocol-Version", r->revision->name) ||
        ! must_be (&c, "Mcp-Method", r->message.method))
        return false;
    if (name && ! must_be (&c, "Mcp-Name", name))
        return false;
    if (schema)
        mcp_params_visit (schema, json_object_get (r->message.params, "arguments"), check_param,
                          &c);
    return ! c.is_bad;
}

void
mcp_headers_judge_version (const struct mcp_request *r, mcp_header_fn *header, const void *ctx,
                           struct mcp_answer *no)
{
    struct check c = { header, ctx, no, false };
    const json_t *meta = json_object_get (r->message.params, "_meta");
    const char *named = json_get_string (meta, MCP_META_VERSION);
    if (named && header (ctx, "MCP-Protocol-Version"))
        must_be (&c, "MCP-Protocol-Version", named);
}

/* --- pages of browsers --- */

/* "localhost", "127.x.y.z" or "[::1]", with any port or none. */
static bool
is_here (const char *host)
{
    static const char *const names[] = { "localhost", "[::1]" };
    size_t len = host[0] == '[' ? strcspn (host, "]") + 1 : strcspn (host, ":/");
    if (len > strlen (host))
        return false;
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (len == strlen (names[i]) && strncasecmp (host, names[i], len) == 0)
            return host[len] == '\0' || host[len] == ':';
    size_t digits = strspn (host, "0123456789.");
    return digits == len && str_starts (host, "127.") && (host[len] == '\0' || host[len] == ':');
}

bool
mcp_is_foreign (const char *origin, const char *host, bool is_loopback)
{
    if (origin) {
        const char *at = strstr (origin, "://");
        if (! at || ! is_here (at + 3))
            return true;
    }
    return is_loopback && host && ! is_here (host);
}
