/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/reading.h"

#include "base/alloc.h"
#include "manifest/text/yaml_tree.h"

#include <string.h>

#define PAIRS_MAX 64

bool
refuse_value (const struct reading *rd, struct mur_error **err, const char *path, const char *fmt,
              ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    return schema_fail (&rd->r, err, E_MAN_003, path, "%s", text);
}

char *
path_of (const struct reading *rd, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    return arena_strdup (rd->r.arena, text);
}

struct indexed_text {
    const char *text;
    size_t index;
};

static int
compare_indexed (const void *x, const void *y)
{
    const struct indexed_text *a = x, *b = y;
    int order = strcmp (a->text, b->text);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

size_t
find_repeat (const char *const *items, size_t len)
{
    _cleanup_free_ struct indexed_text *sorted = x_new_array (struct indexed_text, len + 1);
    for (size_t i = 0; i < len; i++)
        sorted[i] = (struct indexed_text){ items[i], i };
    qsort (sorted, len, sizeof *sorted, compare_indexed);
    size_t first = len;
    for (size_t i = 1; i < len; i++)
        if (strcmp (sorted[i - 1].text, sorted[i].text) == 0 && sorted[i].index < first)
            first = sorted[i].index;
    return first;
}

static int
compare_texts (const void *x, const void *y)
{
    return strcmp (*(const char *const *)x, *(const char *const *)y);
}

struct text_set
text_set_of (const struct reading *rd, const char *const *items, size_t len)
{
    struct text_set set = { arena_new_array (rd->r.arena, const char *, len + 1), len };
    if (len)
        memcpy (set.sorted, items, len * sizeof *items);
    qsort (set.sorted, len, sizeof *set.sorted, compare_texts);
    return set;
}

bool
text_set_has (const struct text_set *set, const char *text)
{
    return bsearch (&text, set->sorted, set->len, sizeof *set->sorted, compare_texts) != NULL;
}

bool
read_text_pairs (const struct reading *rd, const struct yaml_node *n, const char *path,
                 struct name_value **items, size_t *len, struct mur_error **err)
{
    if (! n)
        return true;
    if (n->kind != YAML_MAP)
        return refuse_value (rd, err, path, "it must be a map of names to texts");
    if (n->len > PAIRS_MAX)
        return refuse_value (rd, err, path, "%u entries, the most is %d", n->len, PAIRS_MAX);
    *items = arena_new_array (rd->r.arena, struct name_value, n->len + 1);
    for (uint32_t i = 0; i < n->len; i++) {
        const char *name = yaml_text (n->pairs[i].key), *value = yaml_text (n->pairs[i].value);
        const char *at = path_of (rd, "%s.%s", path, name ? name : "?");
        if (! name || ! *name || ! value)
            return refuse_value (rd, err, at, "a name and a text are wanted");
        (*items)[(*len)++] = (struct name_value){ name, value };
    }
    return true;
}
