/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as YAML: block style, keys sorted, text quoted unless it can be nothing but text.
 */
#include "deploy/deploy_internal.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void put_value (struct buf *out, const json_t *value, int indent);

static bool
is_plain (const char *text)
{
    static const char *const words[] = {
        "true", "false", "null", "yes", "no", "on", "off", "y", "n"
    };
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        if (strcasecmp (text, words[i]) == 0)
            return false;
    if (! isalpha ((unsigned char)text[0]) && text[0] != '/')
        return false;
    for (const char *c = text; *c; c++)
        if (! isalnum ((unsigned char)*c) && ! strchr ("._/-", *c))
            return false;
    return true;
}

static void
put_text (struct buf *out, const char *text)
{
    if (is_plain (text)) {
        buf_puts (out, text);
        return;
    }
    _cleanup_json_ json_t *value = json_string (text);
    _cleanup_free_ char *quoted = json_text (value, JSON_TEXT_SORTED);
    buf_puts (out, quoted);
}

static int
compare_names (const void *a, const void *b)
{
    return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static void
put_map (struct buf *out, const json_t *map, int indent)
{
    size_t count = json_object_size (map), n = 0;
    _cleanup_free_ const char **names = x_new_array (const char *, count + 1);
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)map, name, value) names[n++] = name;
    qsort (names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        buf_printf (out, "%*s", indent, "");
        put_text (out, names[i]);
        buf_puts (out, ":");
        put_value (out, json_object_get (map, names[i]), indent);
    }
}

static void
put_list (struct buf *out, const json_t *list, int indent)
{
    for (size_t i = 0; i < json_array_size (list); i++) {
        const json_t *item = json_array_get (list, i);
        buf_printf (out, "%*s-", indent, "");
        if (! json_is_object (item) || ! json_object_size (item)) {
            put_value (out, item, indent);
            continue;
        }
        /* Its first key stands behind the dash. */
        _cleanup_buf_ struct buf inner = { 0 };
        put_map (&inner, item, indent + 2);
        buf_puts (out, inner.data + indent + 1);
    }
}

/* Behind "name:" or "-"; ends its line. */
static void
put_value (struct buf *out, const json_t *value, int indent)
{
    if (json_is_object (value) && json_object_size (value)) {
        buf_puts (out, "\n");
        put_map (out, value, indent + 2);
    } else if (json_is_array (value) && json_array_size (value)) {
        buf_puts (out, "\n");
        put_list (out, value, indent + 2);
    } else {
        buf_puts (out, " ");
        _cleanup_free_ char *text =
            json_is_string (value) ? NULL : json_text (value, JSON_TEXT_SORTED);
        if (text)
            buf_puts (out, text);
        else
            put_text (out, json_string_value (value));
        buf_puts (out, "\n");
    }
}

void
deploy_yaml (struct buf *out, const json_t *value)
{
    put_map (out, value, 0);
}
