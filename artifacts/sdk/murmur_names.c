/* SPDX-License-Identifier: Apache-2.0
 *
 * Names there and back (murmur_names.h). Nothing is remembered between a request and its answer: a
 * narrowed name is found again by narrowing those of the schema.
 */
#include "murmur_names.h"
#include "murmur_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LIMIT  64
#define CHECK_CHARS 9 /* "_" and 8 digits */

static bool
is_taken_as_is (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool
mur_is_narrow (const char *name)
{
    size_t len = strlen (name);
    for (size_t i = 0; i < len; i++)
        if (! is_taken_as_is (name[i]))
            return false;
    return len > 0 && len <= NAME_LIMIT;
}

/* FNV-1a. */
static uint32_t
check_of (const char *name)
{
    uint32_t check = 2166136261u;
    for (; *name != '\0'; name++)
        check = (check ^ (unsigned char)*name) * 16777619u;
    return check;
}

void
mur_narrow_name (const char *name, struct mur_text *to)
{
    if (mur_is_narrow (name)) {
        mur_text_puts (to, name);
        return;
    }
    size_t count = 0;
    for (const char *c = name; *c != '\0' && count < NAME_LIMIT - CHECK_CHARS; c++)
        if (is_taken_as_is (*c)) {
            mur_text_add (to, c, 1);
            count++;
        }
    mur_text_printf (to, "_%08x", (unsigned)check_of (name));
}

/* Adds the members under the names that `rename` gives for their keys. */
static void
add_renamed (const struct mur_json *json, mur_node input, struct mur_text *to,
             char *(*rename) (const char *key, void *context), void *context)
{
    mur_text_puts (to, "{");
    for (mur_node n = mur_json_first (json, input); n >= 0; n = mur_json_next (json, n)) {
        char *key = mur_json_key (json, n), *name = rename (key, context);
        mur_text_node (to, name, json, n);
        free (name);
        free (key);
    }
    mur_text_puts (to, "}");
}

static char *
narrow (const char *key, void *context)
{
    struct mur_text name = { 0 };
    (void)context;
    mur_narrow_name (key, &name);
    return name.data;
}

void
mur_narrow_input (const struct mur_json *json, mur_node input, struct mur_text *to)
{
    add_renamed (json, input, to, narrow, NULL);
}

/* --- Back --- */

struct schema {
    const struct mur_json *json;
    mur_node root;
};

/* True of what mur_narrow_name may have made. */
static bool
has_check (const char *name)
{
    size_t len = strlen (name);
    const char *check = name + len - CHECK_CHARS;
    return len >= CHECK_CHARS && *check == '_' &&
           strspn (check + 1, "0123456789abcdef") == CHECK_CHARS - 1;
}

/* The key anywhere in the schema that was narrowed to this name, or NULL. */
static char *
key_of (const struct mur_json *json, mur_node at, const char *name)
{
    for (mur_node n = mur_json_first (json, at); n >= 0; n = mur_json_next (json, n)) {
        char *key = mur_json_key (json, n);
        char *narrowed = key != NULL ? narrow (key, NULL) : NULL;
        bool is_it = narrowed != NULL && strcmp (narrowed, name) == 0;
        free (narrowed);
        if (is_it)
            return key;
        free (key);
        char *below = key_of (json, n, name);
        if (below != NULL)
            return below;
    }
    return NULL;
}

static char *
widen (const char *key, void *context)
{
    const struct schema *schema = context;
    char *found = has_check (key) ? key_of (schema->json, schema->root, key) : NULL;
    return found != NULL ? found : copy_bytes (key, strlen (key));
}

void
mur_widen_input (const struct mur_json *request, const char *tool, struct mur_text *input)
{
    struct schema schema = { request, -1 };
    mur_node tools = mur_json_get (request, 0, "tools");
    for (mur_node t = mur_json_first (request, tools); t >= 0; t = mur_json_next (request, t))
        if (mur_json_is (request, mur_json_get (request, t, "name"), tool))
            schema.root = mur_json_get (request, t, "parameters");
    struct mur_json *json = mur_json_parse (input->data, input->len);
    bool has_any = false;
    for (mur_node n = mur_json_first (json, 0); n >= 0; n = mur_json_next (json, n)) {
        char *key = mur_json_key (json, n);
        has_any = has_any || (key != NULL && has_check (key));
        free (key);
    }
    if (has_any) {
        struct mur_text renamed = { 0 };
        add_renamed (json, 0, &renamed, widen, &schema);
        mur_text_free (input);
        *input = renamed;
    }
    mur_json_free (json);
}

/* --- Tools --- */

static const char around[] = " \t\r\n\"'`"; /* what models write around a name */

static bool
is_nearly (const char *name, const char *tool, size_t len)
{
    for (; len > 0 && *name != '\0'; name++, tool++, len--)
        if (tolower (*name == '_' ? '-' : *name) != tolower (*tool == '_' ? '-' : *tool))
            return false;
    return len == 0 && name[strspn (name, around)] == '\0';
}

char *
mur_meant_tool (const struct mur_json *request, const char *name)
{
    const char *last = name + strlen (name);
    while (last > name && strchr ("./:", last[-1]) == NULL)
        last--;
    last += strspn (last, around);
    mur_node meant = -1, tools = mur_json_get (request, 0, "tools");
    for (mur_node t = mur_json_first (request, tools); t >= 0; t = mur_json_next (request, t)) {
        mur_node tool = mur_json_get (request, t, "name");
        size_t len;
        const char *raw = mur_json_raw (request, tool, &len);
        if (mur_json_is (request, tool, name))
            return NULL;
        if (len > 2 && is_nearly (last, raw + 1, len - 2)) {
            if (meant >= 0)
                return NULL;
            meant = tool;
        }
    }
    return mur_json_text (request, meant);
}

void
mur_text_tool_name (struct mur_text *to, const struct mur_json *json, mur_node name)
{
    char *text = mur_json_text (json, name);
    size_t len = text != NULL ? strlen (text) : 0;
    for (size_t i = 0; i < len; i++)
        if (! is_taken_as_is (text[i]) || text[i] == '.')
            text[i] = '_';
    if (len > NAME_LIMIT)
        text[NAME_LIMIT] = '\0';
    mur_text_string (to, "name", len > 0 ? text : "_");
    free (text);
}
