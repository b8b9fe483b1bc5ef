/* SPDX-License-Identifier: Apache-2.0
 *
 * The document of std/json as a tree (tree.h says what each function does). Memory is never given
 * back: a call lives in an instance of its own.
 */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

/* --- Making --- */

static struct value *
empty_value (enum mur_json_kind kind)
{
    struct value *value = calloc (1, sizeof *value);
    if (value == NULL)
        abort ();
    value->kind = kind;
    return value;
}

static void
append (struct value *parent, struct value *child)
{
    child->parent = parent;
    child->next = NULL;
    if (parent->last != NULL)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

struct value *
value_new (const struct mur_json *json, mur_node node)
{
    struct value *value = empty_value (mur_json_kind (json, node));
    value->raw = mur_json_raw (json, node, &value->raw_len);
    value->is_one_line = memchr (value->raw, '\n', value->raw_len) == NULL;
    value->text = mur_json_text (json, node);
    if (value->kind != MUR_JSON_ARRAY && value->kind != MUR_JSON_OBJECT)
        return value;
    for (mur_node n = mur_json_first (json, node); n >= 0; n = mur_json_next (json, n)) {
        struct value *child = value_new (json, n);
        if (value->kind == MUR_JSON_OBJECT)
            child->key = mur_json_key (json, n);
        append (value, child);
    }
    return value;
}

void
value_loosen (struct value *value)
{
    if (value->kind != MUR_JSON_ARRAY && value->kind != MUR_JSON_OBJECT)
        return;
    value->raw = NULL;
    value->is_one_line = false;
    for (struct value *c = value->first; c != NULL; c = c->next)
        value_loosen (c);
}

struct value *
value_copy (const struct value *from)
{
    struct value *value = empty_value (from->kind);
    *value = *from;
    value->parent = value->first = value->last = value->next = NULL;
    value->count = 0;
    for (const struct value *c = from->first; c != NULL; c = c->next)
        append (value, value_copy (c));
    return value;
}

/* --- Comparing --- */

double
value_number (const struct value *value)
{
    return strtod (value->raw, NULL);
}

static bool
same_raw (const struct value *a, const struct value *b)
{
    return a->raw_len == b->raw_len && memcmp (a->raw, b->raw, a->raw_len) == 0;
}

static bool
same_members (const struct value *a, const struct value *b)
{
    const struct value *other = b->first;
    for (const struct value *c = a->first; c != NULL; c = c->next) {
        const struct value *d = a->kind == MUR_JSON_OBJECT ? value_member (b, c->key) : other;
        if (d == NULL || ! value_equals (c, d))
            return false;
        other = other->next;
    }
    return true;
}

bool
value_equals (const struct value *a, const struct value *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch (a->kind) {
    case MUR_JSON_STRING:
        return strcmp (a->text, b->text) == 0;
    case MUR_JSON_NUMBER: {
        double x = value_number (a), y = value_number (b);
        return same_raw (a, b) || (x <= y && x >= y);
    }
    case MUR_JSON_ARRAY:
    case MUR_JSON_OBJECT:
        return same_members (a, b);
    default:
        return same_raw (a, b);
    }
}

/* --- Changing --- */

struct value *
value_member (const struct value *object, const char *key)
{
    if (object->kind != MUR_JSON_OBJECT)
        return NULL;
    for (struct value *c = object->first; c != NULL; c = c->next)
        if (strcmp (c->key, key) == 0)
            return c;
    return NULL;
}

struct value *
value_item (const struct value *array, size_t index)
{
    struct value *c = array->kind == MUR_JSON_ARRAY ? array->first : NULL;
    while (c != NULL && index-- > 0)
        c = c->next;
    return c;
}

/* Containers alone are written anew; the text of a scalar is the scalar. */
static void
touch (struct value *value)
{
    for (; value != NULL; value = value->parent)
        value->raw = NULL;
}

static struct value **
link_to (struct value *child)
{
    struct value **link = &child->parent->first;
    while (*link != child)
        link = &(*link)->next;
    return link;
}

static void
find_last (struct value *parent)
{
    parent->last = parent->first;
    while (parent->last != NULL && parent->last->next != NULL)
        parent->last = parent->last->next;
}

void
value_remove (struct value *child)
{
    struct value *parent = child->parent;
    *link_to (child) = child->next;
    parent->count--;
    find_last (parent);
    touch (parent);
    child->parent = child->next = NULL;
}

void
value_replace (struct value *old, struct value *new)
{
    struct value *parent = old->parent;
    *link_to (old) = new;
    new->next = old->next;
    new->parent = parent;
    new->key = old->key;
    find_last (parent);
    touch (parent);
    old->parent = old->next = NULL;
}

void
value_set (struct value *object, const char *key, struct value *child)
{
    struct value *old = value_member (object, key);
    if (old != NULL) {
        value_replace (old, child);
        return;
    }
    child->key = mur_format ("%s", key);
    append (object, child);
    touch (object);
}

void
value_insert (struct value *array, size_t index, struct value *child)
{
    child->key = NULL;
    if (index == array->count) {
        append (array, child);
    } else {
        struct value *after = value_item (array, index);
        *link_to (after) = child;
        child->next = after;
        child->parent = array;
        array->count++;
    }
    touch (array);
}

/* --- Pointers --- */

static size_t
index_of (const struct value *child)
{
    size_t index = 0;
    for (const struct value *c = child->parent->first; c != child; c = c->next)
        index++;
    return index;
}

void
value_pointer (const struct value *value, struct mur_text *text)
{
    if (value->parent == NULL)
        return;
    value_pointer (value->parent, text);
    mur_text_puts (text, "/");
    if (value->key == NULL)
        mur_text_printf (text, "%zu", index_of (value));
    for (const char *c = value->key; c != NULL && *c != '\0'; c++)
        if (*c == '~' || *c == '/')
            mur_text_puts (text, *c == '~' ? "~0" : "~1");
        else
            mur_text_add (text, c, 1);
}

char *
pointer_part (const char *from, size_t len)
{
    struct mur_text part = { 0 };
    mur_text_puts (&part, "");
    for (size_t i = 0; i < len; i++) {
        bool is_escape =
            from[i] == '~' && i + 1 < len && (from[i + 1] == '0' || from[i + 1] == '1');
        if (is_escape)
            mur_text_puts (&part, from[++i] == '0' ? "~" : "/");
        else
            mur_text_add (&part, from + i, 1);
    }
    return part.data;
}

struct value *
value_find (struct value *root, const char *pointer)
{
    struct value *at = root;
    while (at != NULL && *pointer == '/') {
        size_t len = strcspn (++pointer, "/");
        char *part = pointer_part (pointer, len);
        bool is_index = *part != '\0' && part[strspn (part, "0123456789")] == '\0' &&
                        (*part != '0' || part[1] == '\0') && len < 10;
        if (at->kind == MUR_JSON_ARRAY)
            at = is_index ? value_item (at, strtoul (part, NULL, 10)) : NULL;
        else
            at = value_member (at, part);
        free (part);
        pointer += len;
    }
    return *pointer == '\0' ? at : NULL;
}

/* --- Writing --- */

static void
new_line (const struct layout *layout, int depth, struct mur_text *text)
{
    mur_text_puts (text, "\n");
    for (int i = 0; i < depth; i++)
        mur_text_puts (text, layout->indent);
}

static void
write_at (const struct value *value, const struct layout *layout, int depth, bool is_in_line,
          struct mur_text *text)
{
    bool is_object = value->kind == MUR_JSON_OBJECT;
    bool is_container = is_object || value->kind == MUR_JSON_ARRAY;
    if (value->raw != NULL && (! is_container || ! layout->is_fresh)) {
        mur_text_add (text, value->raw, value->raw_len);
        return;
    }
    if (layout->depth_limit > 0 && depth >= layout->depth_limit && value->count > 0) {
        mur_text_printf (text, is_object ? "{%zu members}" : "[%zu items]", value->count);
        return;
    }
    bool was_spread = layout->is_fresh || ! value->is_one_line || value->raw_len <= 2;
    bool is_spread = layout->indent != NULL && ! is_in_line && was_spread && value->count > 0;
    mur_text_puts (text, is_object ? "{" : "[");
    for (const struct value *c = value->first; c != NULL; c = c->next) {
        if (is_spread)
            new_line (layout, depth + 1, text);
        if (is_object) {
            mur_text_json (text, c->key);
            mur_text_puts (text, layout->is_spaced ? ": " : ":");
        }
        write_at (c, layout, depth + 1, ! is_spread, text);
        if (c->next != NULL)
            mur_text_puts (text, is_spread || ! layout->is_spaced ? "," : ", ");
    }
    if (is_spread)
        new_line (layout, depth, text);
    mur_text_puts (text, is_object ? "}" : "]");
}

void
value_write (const struct value *value, const struct layout *layout, struct mur_text *text)
{
    write_at (value, layout, 0, false, text);
}
