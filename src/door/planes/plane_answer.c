/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/plane_answer.h"

#include "base/alloc.h"
#include "base/json.h"
#include "net/server/http_exchange.h"

#include <string.h>
#include <strings.h>

size_t
plane_path_len (const struct http_exchange *x)
{
    return strcspn (http_exchange_target (x), "?");
}

bool
plane_is_under (const struct http_exchange *x, const char *prefix)
{
    size_t len = strlen (prefix), path = plane_path_len (x);
    const char *target = http_exchange_target (x);
    return path >= len && strncmp (target, prefix, len) == 0 &&
           (path == len || target[len] == '/' || prefix[len - 1] == '/');
}

bool
plane_is_get (const struct http_exchange *x)
{
    return strcmp (http_exchange_method (x), "GET") == 0;
}

bool
plane_has_json_type (const struct http_exchange *x)
{
    size_t lines;
    const char *value = http_exchange_header (x, "content-type", &lines);
    if (! value || lines != 1)
        return false;
    size_t len = strcspn (value, "; \t");
    return (len == 16 && strncasecmp (value, "application/json", len) == 0) ||
           (len > 5 && strncasecmp (value, "application/", 12) == 0 &&
            strncasecmp (value + len - 5, "+json", 5) == 0);
}

static void
add (struct plane_headers *h, const char *name, char *value)
{
    strv_take (&h->values, value);
    if (h->len < ARRAY_LEN (h->items))
        h->items[h->len++] = (struct http_header){ name, value, strlen (value) };
}

void
plane_header (struct plane_headers *h, const char *name, const char *value)
{
    add (h, name, x_strdup (value));
}

void
plane_header_number (struct plane_headers *h, const char *name, int64_t value)
{
    add (h, name, x_asprintf ("%lld", (long long)value));
}

void
plane_headers_clear (struct plane_headers *h)
{
    strv_free (&h->values);
    *h = (struct plane_headers){ 0 };
}

void
plane_refuse (struct http_exchange *x, struct plane_headers *h, int status, const char *code,
              const char *message)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "error", code);
    json_set_string (o, "message", message);
    _cleanup_free_ char *body = json_text (o, JSON_TEXT_SORTED);
    plane_header (h, "content-type", "application/json");
    http_reply (x, status, h->items, h->len, body, strlen (body));
}
