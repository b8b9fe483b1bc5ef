/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/schema.h"
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/printable.h"
#include "manifest/text/grammar.h"
#include "manifest/text/suggest.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define UNKNOWN_KEYS_MAX 1000 /* kept; a file with more is no mistake of spelling */

/* Where a walk is, as a chain on the C stack: text is made only when a message needs it. */
struct place {
    const struct place *outer;
    const char *name; /* NULL: an element */
    size_t index;
};

static void
put_place (struct buf *out, const struct place *p)
{
    if (! p)
        return;
    put_place (out, p->outer);
    if (! p->name)
        buf_printf (out, "[%zu]", p->index);
    else if (*p->name)
        buf_printf (out, "%s%s", out->len ? "." : "", p->name);
}

/* A name of the file as it stands within a line. */
static char *
shown_name (struct arena *a, const char *name)
{
    _cleanup_buf_ struct buf out = { 0 };
    buf_append_printable (&out, name, strlen (name), PRINTABLE_LINE);
    return arena_strndup (a, out.data ? out.data : "", out.len);
}

static char *
place_text (struct arena *a, const struct place *p)
{
    _cleanup_buf_ struct buf out = { 0 };
    put_place (&out, p);
    return shown_name (a, out.data ? out.data : "");
}

/* --- faults of type --- */

/* What a message quotes of a value. */
static char *
describe (struct arena *a, const struct yaml_node *n)
{
    if (! yaml_is_scalar (n) || n->kind == YAML_NULL)
        return arena_printf (a, "a %s", yaml_kind_name (n));
    size_t shown = utf8_cut (n->text, n->len, 60);
    return arena_printf (a, "the %s '%s%s'", yaml_kind_name (n),
                         shown_name (a, arena_strndup (a, n->text, shown)),
                         shown < n->len ? "…" : "");
}

static void
keep_fault (struct schema_reader *r, enum diag_code code, const struct yaml_node *at,
            const struct place *place, const char *text)
{
    bool is_nearer =
        at->line < r->fault_line || (at->line == r->fault_line && at->column < r->fault_column);
    if (r->fault && ! is_nearer)
        return;
    mur_error_free (r->fault);
    r->fault = NULL;
    r->fault_line = at->line;
    r->fault_column = at->column;
    const char *path = place_text (r->arena, place);
    mur_fail (&r->fault, code, "%s:%u:%u: %s%s%s", r->file, at->line, at->column, path,
              *path ? ": " : "", text);
}

static bool
type_fault (struct schema_reader *r, const struct yaml_node *at, const struct place *place,
            const char *expected)
{
    keep_fault (
        r, r->code, at, place,
        arena_printf (r->arena, "expected %s, found %s", expected, describe (r->arena, at)));
    return false;
}

/* What to write in place, where the fault at <at> is the one that is told. */
static void
fault_hint (struct schema_reader *r, const struct yaml_node *at, const char *hint)
{
    if (hint && at->line == r->fault_line && at->column == r->fault_column && ! r->fault->hint)
        mur_hint (&r->fault, "%s", hint);
}

/* One text where a list belongs, as the list that was meant. NULL: no short text. */
static const char *
as_list (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n)
{
    bool is_short = yaml_is_scalar (n) && n->kind != YAML_NULL && n->len && n->len <= 60;
    return is_short && text_is_printable (n->text, TEXT_NAME)
               ? arena_printf (r->arena, "a list: %s: [%s]", k->name, n->text)
               : NULL;
}

/* The keys of a block. */
static const char *
its_keys (struct schema_reader *r, const struct schema *schema)
{
    _cleanup_buf_ struct buf names = { 0 };
    for (const struct schema_key *k = schema->keys; k->name; k++)
        if (! (k->flags & KEY_HIDDEN))
            buf_printf (&names, "%s%s", names.len ? ", " : "", k->name);
    return arena_printf (r->arena, "its keys are %s", names.data ? names.data : "none");
}

static const char *
nearest_word (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n)
{
    const char *nearest = NULL;
    size_t distance = 3; /* what is farther is another word */
    for (uint64_t i = 0; yaml_is_scalar (n) && k->words[i]; i++) {
        size_t d = schema_distance (n->text, k->words[i]);
        if (d < distance && d < strlen (k->words[i])) {
            distance = d;
            nearest = k->words[i];
        }
    }
    return nearest ? arena_printf (r->arena, "did you mean %s?", nearest) : NULL;
}

bool
schema_take_fault (struct schema_reader *r, struct mur_error **err)
{
    return r->fault ? mur_propagate (err, steal_ptr (&r->fault)) : true;
}

/* --- reading one value --- */

/* What is read here is shown to a person before it is trusted, and stands in paths, headers and
 * variables. */
static void
check_characters (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
                  const struct place *place)
{
    enum text_kind kind = k->flags & KEY_PROSE   ? TEXT_PROSE
                          : k->type == KEY_TEXTS ? TEXT_NAME
                                                 : TEXT_LINES;
    if (text_is_printable (n->text, kind))
        return;
    _cleanup_buf_ struct buf shown = { 0 };
    buf_append_printable (&shown, n->text, utf8_cut (n->text, n->len, 60), PRINTABLE_LINE);
    keep_fault (r, r->code == E_MAN_002 ? E_MAN_003 : r->code, n, place,
                arena_printf (r->arena,
                              "\"%s\" has a character that steers a terminal or turns the order of "
                              "what is read: leave it out",
                              shown.data));
}

static void read_block (struct schema_reader *r, const struct schema *schema,
                        const struct yaml_node *map, const struct place *place, void *out);

static void
read_text (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
           const struct place *place, const char **out)
{
    if (! yaml_is_scalar (n)) {
        type_fault (r, n, place, "text");
        return;
    }
    check_characters (r, k, n, place);
    if (k->type == KEY_TEXT) {
        *out = n->text;
        return;
    }
    char *text = text_trim (r->arena, n->text);
    *out = *text || k->type == KEY_TRIM_KEPT ? text : NULL;
}

static void
read_unsigned (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
               const struct place *place, struct opt_u64 *out)
{
    static const struct {
        uint64_t max;
        const char *name;
    } widths[] = {
        [KEY_U16] = { UINT16_MAX, "a whole number of 0 to 65535" },
        [KEY_U32] = { UINT32_MAX, "a whole number of 0 to 4294967295" },
        [KEY_U64] = { UINT64_MAX, "a whole number of 0 to 18446744073709551615" },
    };
    uint64_t value;
    if (! yaml_as_u64 (n, &value) || value > widths[k->type].max) {
        type_fault (r, n, place, widths[k->type].name);
        return;
    }
    *out = (struct opt_u64){ value, true };
}

static void
read_enum (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
           const struct place *place, struct opt_u64 *out)
{
    bool truth;
    /* Words that are booleans are so unquoted alone, in every spelling of YAML. */
    const bool is_truth = yaml_as_bool (n, &truth);
    for (uint64_t i = 0; yaml_is_scalar (n) && k->words[i]; i++) {
        bool is_word_true = strcmp (k->words[i], "true") == 0;
        bool is_boolean = is_word_true || strcmp (k->words[i], "false") == 0;
        if (is_boolean ? is_truth && truth == is_word_true : strcmp (k->words[i], n->text) == 0) {
            *out = (struct opt_u64){ i, true };
            return;
        }
    }
    type_fault (r, n, place,
                arena_printf (r->arena, "one of %s", schema_words (r->arena, k->words)));
    fault_hint (r, n, nearest_word (r, k, n));
}

static void
read_texts (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
            const struct place *place, struct str_list *out)
{
    if (n->kind != YAML_LIST) {
        type_fault (r, n, place, "a list of texts");
        fault_hint (r, n, as_list (r, k, n));
        return;
    }
    out->is_set = true;
    out->items = arena_new_array (r->arena, const char *, (size_t)n->len + 1);
    for (uint32_t i = 0; i < n->len; i++) {
        const struct place element = { place, NULL, i };
        const struct yaml_node *item = n->items[i];
        if (! yaml_is_scalar (item)) {
            type_fault (r, item, &element, "text");
            continue;
        }
        check_characters (r, k, item, &element);
        out->items[out->len++] =
            k->flags & KEY_TRIM_ITEMS ? text_trim (r->arena, item->text) : item->text;
    }
}

static void
read_blocks (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
             const struct place *place, void *out)
{
    if (n->kind != YAML_LIST) {
        type_fault (r, n, place, "a list of blocks");
        return;
    }
    LIST_OF (char) *list = out;
    list->is_set = true;
    list->len = n->len;
    list->items = arena_alloc (r->arena, n->len * k->block->size);
    for (uint32_t i = 0; i < n->len; i++) {
        const struct place element = { place, NULL, i };
        read_block (r, k->block, n->items[i], &element, list->items + i * k->block->size);
    }
}

static int
compare_names (const void *x, const void *y)
{
    return strcmp (*(const char *const *)x, *(const char *const *)y);
}

static void
read_block_map (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
                const struct place *place, void *out)
{
    if (n->kind != YAML_MAP) {
        type_fault (r, n, place, "a map of names to blocks");
        return;
    }
    LIST_OF (char) *list = out;
    list->is_set = true;
    list->items = arena_alloc (r->arena, n->len * k->block->size);
    for (uint32_t i = 0; i < n->len; i++) {
        const struct yaml_node *key = n->pairs[i].key, *value = n->pairs[i].value;
        if (! yaml_is_scalar (key)) {
            type_fault (r, key, place, "a name");
            continue;
        }
        const struct place inner = { place, key->text, 0 };
        char *item = list->items + list->len++ * k->block->size;
        read_block (r, k->block, value, &inner, item);
        *(const char **)(void *)item = key->text; /* a block's name is its first member */
    }
    qsort (list->items, list->len, k->block->size, compare_names);
}

static bool
is_list (const struct schema_key *k)
{
    return k->type == KEY_TEXTS || k->type == KEY_BLOCKS || k->type == KEY_BLOCK_MAP;
}

/* What null means for the key: handled here, so that the typed readers never see it. */
static void
read_null (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
           const struct place *place, char *slot)
{
    if (k->flags & KEY_NULL_IS_ERROR) {
        type_fault (r, n, place, k->type == KEY_BOOL ? "true or false" : "a value");
    } else if (k->type == KEY_BLOCK && k->flags & KEY_NULL_IS_EMPTY) {
        void *block = arena_alloc (r->arena, k->block->size);
        read_block (r, k->block, NULL, place, block);
        *(void **)(void *)slot = block;
    } else if (is_list (k) && ! (k->flags & KEY_NULL_IS_ABSENT)) {
        if (n->len || ! n->is_plain)
            type_fault (r, n, place, "a list");
        else
            ((struct str_list *)(void *)slot)->is_set = true; /* every list has this layout */
    }
}

static void
read_value (struct schema_reader *r, const struct schema_key *k, const struct yaml_node *n,
            const struct place *place, char *slot)
{
    void *out = slot;
    if (k->type == KEY_IGNORED)
        return;
    if (k->type == KEY_NODE || k->type == KEY_SCALAR) {
        if (k->type == KEY_SCALAR && ! yaml_is_scalar (n))
            type_fault (r, n, place, "text");
        *(const struct yaml_node **)out = n;
        return;
    }
    if (n->kind == YAML_NULL) {
        read_null (r, k, n, place, slot);
        return;
    }
    struct opt_bool *flag = out;
    struct opt_double *fraction = out;
    switch (k->type) {
    case KEY_TEXT:
    case KEY_TRIMMED:
    case KEY_TRIM_KEPT:
        read_text (r, k, n, place, out);
        break;
    case KEY_BOOL:
        flag->is_set = yaml_as_bool (n, &flag->value) || type_fault (r, n, place, "true or false");
        break;
    case KEY_U16:
    case KEY_U32:
    case KEY_U64:
        read_unsigned (r, k, n, place, out);
        break;
    case KEY_FLOAT:
        fraction->is_set =
            yaml_as_double (n, &fraction->value) || type_fault (r, n, place, "a number");
        break;
    case KEY_ENUM:
        read_enum (r, k, n, place, out);
        break;
    case KEY_TEXTS:
        read_texts (r, k, n, place, out);
        break;
    case KEY_BLOCKS:
        read_blocks (r, k, n, place, out);
        break;
    case KEY_BLOCK_MAP:
        read_block_map (r, k, n, place, out);
        break;
    default:
        *(void **)out = arena_alloc (r->arena, k->block->size);
        read_block (r, k->block, n, place, *(void **)out);
    }
}

/* --- reading one block --- */

static void
set_default (const struct schema_key *k, char *slot)
{
    void *out = slot;
    switch (k->type) {
    case KEY_BOOL:
        *(struct opt_bool *)out = (struct opt_bool){ k->fallback != 0, false };
        break;
    case KEY_U16:
    case KEY_U32:
    case KEY_U64:
    case KEY_ENUM:
        *(struct opt_u64 *)out = (struct opt_u64){ k->fallback, false };
        break;
    case KEY_FLOAT:
        *(struct opt_double *)out = (struct opt_double){ k->fallback_fraction, false };
        break;
    default:
        break;
    }
}

static const struct schema_key *
find_key (const struct schema *schema, const char *name)
{
    for (const struct schema_key *k = schema->keys; k->name; k++)
        if (strcmp (k->name, name) == 0)
            return k;
    return NULL;
}

static int
compare_unknown (const void *x, const void *y)
{
    return strcmp (((const struct unknown_key *)x)->key, ((const struct unknown_key *)y)->key);
}

/* Notes the keys of <map> no table knows, in byte order. */
static void
collect_unknown (struct schema_reader *r, const struct schema *schema, const struct yaml_node *map,
                 const struct place *place)
{
    size_t first = r->unknown.len;
    const char *path = NULL;
    for (uint32_t i = 0; i < map->len; i++) {
        const struct yaml_node *key = map->pairs[i].key;
        if (! yaml_is_scalar (key)) {
            type_fault (r, key, place, "a name as key");
            continue;
        }
        if (find_key (schema, key->text))
            continue;
        r->unknown_total++;
        if (r->unknown.len == UNKNOWN_KEYS_MAX)
            continue;
        if (! path)
            path = place_text (r->arena, place);
        x_grow (r->unknown.items, r->unknown.len, r->unknown_cap);
        r->unknown.items[r->unknown.len++] = (struct unknown_key){
            shown_name (r->arena, key->text),
            path,
            schema_suggest (schema, key->text),
        };
    }
    if (r->unknown.len > first)
        qsort (r->unknown.items + first, r->unknown.len - first, sizeof *r->unknown.items,
               compare_unknown);
}

static void
read_block (struct schema_reader *r, const struct schema *schema, const struct yaml_node *map,
            const struct place *place, void *out)
{
    for (const struct schema_key *k = schema->keys; k->name; k++)
        set_default (k, (char *)out + k->offset);
    if (map && map->kind != YAML_MAP) {
        type_fault (r, map, place, "a map of keys");
        fault_hint (r, map, its_keys (r, schema));
        return;
    }
    if (map)
        collect_unknown (r, schema, map, place);
    for (const struct schema_key *k = schema->keys; k->name; k++) {
        const struct yaml_node *value = map ? yaml_get (map, k->name) : NULL;
        const struct place inner = { place, k->name, 0 };
        bool is_missing = ! value || value->kind == YAML_NULL;
        if (value)
            read_value (r, k, value, &inner, (char *)out + k->offset);
        if (is_missing && k->flags & KEY_REQUIRED)
            keep_fault (r, r->code, map ? map : r->root, &inner, "this key is required");
    }
}

void
schema_read (struct schema_reader *r, const struct schema *schema, const struct yaml_node *map,
             const char *path, void *out)
{
    const struct place place = { NULL, path, 0 };
    read_block (r, schema, map, &place, out);
}

void
schema_reader_clear (struct schema_reader *r)
{
    free (r->unknown.items);
    mur_error_free (r->fault);
    *r = (struct schema_reader){ 0 };
}

/* --- judging values --- */

bool
schema_fail (const struct schema_reader *r, struct mur_error **err, enum diag_code code,
             const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    const struct yaml_node *at = yaml_find_nearest (r->root, path);
    return mur_fail (err, code, "%s:%u:%u: %s: %s", r->file, at->line, at->column, path, text);
}

bool
str_list_has (const struct str_list *list, const char *entry)
{
    for (size_t i = 0; i < list->len; i++)
        if (str_eq (list->items[i], entry))
            return true;
    return false;
}

char *
schema_words (struct arena *a, const char *const *words)
{
    _cleanup_buf_ struct buf out = { 0 };
    for (size_t i = 0; words[i]; i++)
        buf_printf (&out, "%s%s", i ? ", " : "", words[i]);
    return arena_strndup (a, out.data ? out.data : "", out.len);
}

static bool
value_fault (const struct schema_reader *r, struct mur_error **err, const struct place *place,
             const char *text)
{
    enum diag_code code = r->code == E_MAN_002 ? E_MAN_003 : r->code;
    return schema_fail (r, err, code, place_text (r->arena, place), "%s", text);
}

static bool
check_integer (const struct schema_reader *r, const struct schema_key *k, struct opt_u64 value,
               const struct place *place, struct mur_error **err)
{
    if (! value.is_set)
        return true;
    if (k->rule == RULE_POSITIVE && value.value == 0)
        return value_fault (r, err, place, "0 is refused: it must be greater than zero");
    if (k->rule == RULE_RANGE && (value.value < k->min || value.value > k->max))
        return value_fault (r, err, place,
                            arena_printf (r->arena,
                                          "%" PRIu64 " is not within %" PRIu64 "..%" PRIu64,
                                          value.value, k->min, k->max));
    return true;
}

static bool
check_fraction (const struct schema_reader *r, const struct schema_key *k, struct opt_double value,
                const struct place *place, struct mur_error **err)
{
    bool wants_positive = k->rule == RULE_FRACTION_ABOVE_0;
    bool is_fine = value.value <= 1.0 && (wants_positive ? value.value > 0.0 : value.value >= 0.0);
    if (! value.is_set || is_fine) /* NaN compares false */
        return true;
    return value_fault (r, err, place,
                        arena_printf (r->arena, "%g is not %s 0.0 and at most 1.0", value.value,
                                      wants_positive ? "above" : "at least"));
}

static bool
check_text (const struct schema_reader *r, const struct schema_key *k, const char *text,
            const struct place *place, struct mur_error **err)
{
    uint64_t amount;
    if (! text)
        return true;
    if (k->rule == RULE_WORDS) {
        for (size_t i = 0; k->words[i]; i++)
            if (strcmp (k->words[i], text) == 0)
                return true;
        value_fault (r, err, place,
                     arena_printf (r->arena, "'%s' is refused: it must be one of: %s", text,
                                   schema_words (r->arena, k->words)));
        return suggestion_among (text, k->words, err);
    }
    if (k->rule == RULE_DURATION && (! duration_parse (text, &amount) || ! amount))
        return value_fault (
            r, err, place,
            arena_printf (r->arena,
                          "'%s' is no duration above 0: write digits and s, m, h or d, such as 30m",
                          text));
    if (k->rule == RULE_SIZE && (! byte_size_parse (text, &amount) || ! amount))
        return value_fault (
            r, err, place,
            arena_printf (r->arena,
                          "'%s' is no size above 0: write digits and Ki, Mi or Gi, such as 10Mi",
                          text));
    return true;
}

static bool check_block (const struct schema_reader *r, const struct schema *schema,
                         const void *block, const struct place *place, struct mur_error **err);

static bool
check_blocks (const struct schema_reader *r, const struct schema_key *k, const void *slot,
              const struct place *place, struct mur_error **err)
{
    const LIST_OF (char) *list = slot;
    for (size_t i = 0; i < list->len; i++) {
        const char *item = list->items + i * k->block->size;
        struct place inner = { place, NULL, i };
        if (k->type == KEY_BLOCK_MAP)
            inner.name = *(const char *const *)(const void *)item;
        if (! check_block (r, k->block, item, &inner, err))
            return false;
    }
    return true;
}

static bool
check_value (const struct schema_reader *r, const struct schema_key *k, const void *slot,
             const struct place *place, struct mur_error **err)
{
    const void *block;
    switch (k->type) {
    case KEY_TEXT:
    case KEY_TRIMMED:
    case KEY_TRIM_KEPT:
        return check_text (r, k, *(const char *const *)slot, place, err);
    case KEY_U16:
    case KEY_U32:
    case KEY_U64:
        return check_integer (r, k, *(const struct opt_u64 *)slot, place, err);
    case KEY_FLOAT:
        return check_fraction (r, k, *(const struct opt_double *)slot, place, err);
    case KEY_BLOCK:
        block = *(void *const *)slot;
        return ! block || check_block (r, k->block, block, place, err);
    case KEY_BLOCKS:
    case KEY_BLOCK_MAP:
        return check_blocks (r, k, slot, place, err);
    default:
        return true;
    }
}

static bool
check_block (const struct schema_reader *r, const struct schema *schema, const void *block,
             const struct place *place, struct mur_error **err)
{
    for (const struct schema_key *k = schema->keys; k->name; k++) {
        const struct place inner = { place, k->name, 0 };
        if (! check_value (r, k, (const char *)block + k->offset, &inner, err))
            return false;
    }
    return true;
}

bool
schema_check (const struct schema_reader *r, const struct schema *schema, const void *block,
              const char *path, struct mur_error **err)
{
    const struct place place = { NULL, path, 0 };
    return check_block (r, schema, block, &place, err);
}
