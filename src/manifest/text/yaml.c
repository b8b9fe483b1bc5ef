/* SPDX-License-Identifier: Apache-2.0
 *
 * Always true: children wait on one shared stack and move to the arena when their container closes,
 * so a container costs exactly its size; every node pushed, an alias with all it stands for, counts
 * against YAML_NODES_MAX before it is kept, so no later walk over the tree is longer than that.
 */
#include "manifest/text/yaml.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/text/merge_marks.h"
#include "manifest/text/yaml_tree.h"

#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <string.h>
#include <yaml.h>

/* A named place an alias may point at. */
struct anchor {
    const char *name;
    struct yaml_node *node;
    bool is_closed; /* false inside its own container: an alias there would be endless */
};

struct frame {
    struct yaml_node *node;
    size_t stack_base; /* its first child on the stack */
    uint32_t weight_base;
    uint8_t levels_below;
    struct anchor *anchor;
};

struct builder {
    const char *text;
    size_t len;
    struct arena *arena;
    const char *name;
    enum diag_code code;
    struct mur_error **err;
    yaml_parser_t parser;
    void *anchors; /* tsearch tree of struct anchor, names and structs in the arena */
    struct frame frames[YAML_LEVELS_MAX];
    size_t depth;
    struct yaml_node **stack;
    size_t stack_len, stack_cap;
    uint32_t weight;
    struct yaml_node *root;
};

static bool
fail_at (struct builder *b, const yaml_mark_t *mark, const char *text)
{
    return mur_fail (b->err, b->code, "%s:%zu:%zu: %s", b->name, mark->line + 1, mark->column + 1,
                     text);
}

/* --- scalars --- */

static bool
is_one_of (const char *text, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (strlen (*words) == len && memcmp (*words, text, len) == 0)
            return true;
    return false;
}

static size_t
digits (const char *p, const char *end, int base)
{
    size_t n = 0;
    for (; p + n < end; n++) {
        char c = p[n];
        bool ok = base == 16  ? isxdigit ((unsigned char)c)
                  : base == 2 ? c == '0' || c == '1'
                  : base == 8 ? c >= '0' && c <= '7'
                              : c >= '0' && c <= '9';
        if (! ok)
            break;
    }
    return n;
}

static bool
is_prefixed_integer (const char *p, const char *end)
{
    if (end - p < 3 || p[0] != '0')
        return false;
    int base = p[1] == 'x' ? 16 : p[1] == 'o' ? 8 : p[1] == 'b' ? 2 : 0;
    return base && digits (p + 2, end, base) == (size_t)(end - p - 2);
}

static bool
is_float (const char *p, const char *end)
{
    size_t whole = digits (p, end, 10);
    p += whole;
    size_t part = 0;
    if (p < end && *p == '.') {
        part = digits (p + 1, end, 10);
        p += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        size_t exponent = digits (p, end, 10);
        if (! exponent)
            return false;
        p += exponent;
    }
    return p == end;
}

enum yaml_kind
yaml_resolve (const char *text, size_t len)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE", NULL };
    static const char *const infinities[] = { ".inf", ".Inf", ".INF", NULL };
    static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };

    if (is_one_of (text, len, nulls))
        return YAML_NULL;
    if (is_one_of (text, len, bools))
        return YAML_BOOL;
    if (is_one_of (text, len, nans))
        return YAML_FLOAT;
    const char *p = text, *end = text + len;
    if (*p == '+' || *p == '-')
        p++;
    if (p < end && is_one_of (p, (size_t)(end - p), infinities))
        return YAML_FLOAT;
    if (is_prefixed_integer (p, end))
        return YAML_INT;
    size_t whole = digits (p, end, 10);
    if (whole && p + whole == end)
        return whole > 1 && *p == '0'
                   ? YAML_STRING
                   : YAML_INT; /* 0755 means different things to different readers */
    return p < end && is_float (p, end) ? YAML_FLOAT : YAML_STRING;
}

#define CORE_TAG "tag:yaml.org,2002:"

/* Settles the kind of a scalar from its style and tag. Returns false when a core tag contradicts
 * the text. */
static bool
settle_scalar (struct builder *b, struct yaml_node *n, const char *tag)
{
    enum yaml_kind plain = n->is_plain ? yaml_resolve (n->text, n->len) : YAML_STRING;
    n->kind = (uint8_t)plain;
    if (! tag)
        return true;
    if (strcmp (tag, "!") == 0) {
        n->kind = YAML_STRING;
        return true;
    }
    if (! str_starts (tag, CORE_TAG)) {
        n->tag = arena_strdup (b->arena, tag);
        return true;
    }
    static const struct {
        const char *name;
        enum yaml_kind kind;
    } core[] = {
        { "str", YAML_STRING }, { "null", YAML_NULL },   { "bool", YAML_BOOL },
        { "int", YAML_INT },    { "float", YAML_FLOAT },
    };
    const char *name = tag + strlen (CORE_TAG);
    for (size_t i = 0; i < ARRAY_LEN (core); i++) {
        if (strcmp (name, core[i].name) != 0)
            continue;
        enum yaml_kind meant = core[i].kind;
        enum yaml_kind found = yaml_resolve (n->text, n->len);
        n->kind = (uint8_t)meant;
        n->is_plain = meant != YAML_STRING;
        return meant == YAML_STRING || found == meant || (meant == YAML_FLOAT && found == YAML_INT);
    }
    n->tag = arena_printf (b->arena, "!!%s", name);
    return true;
}

/* --- anchors --- */

static int
compare_anchors (const void *x, const void *y)
{
    return strcmp (((const struct anchor *)x)->name, ((const struct anchor *)y)->name);
}

static void
keep_anchor (void *anchor)
{
    (void)anchor; /* lives in the arena */
}

static struct anchor *
set_anchor (struct builder *b, const yaml_char_t *name, struct yaml_node *node, bool is_closed)
{
    if (! name)
        return NULL;
    struct anchor *fresh = arena_new0 (b->arena, struct anchor);
    fresh->name = arena_strdup (b->arena, (const char *)name);
    struct anchor **slot = tsearch (fresh, &b->anchors, compare_anchors);
    if (! slot)
        alloc_out_of_memory ();
    (*slot)->node = node;
    (*slot)->is_closed = is_closed;
    return *slot;
}

/* --- building --- */

static struct yaml_node *
node_at (struct builder *b, const yaml_event_t *e)
{
    struct yaml_node *n = arena_new0 (b->arena, struct yaml_node);
    n->line = (uint32_t)e->start_mark.line + 1;
    n->column = (uint32_t)e->start_mark.column + 1;
    n->start = (uint32_t)e->start_mark.index;
    n->end = (uint32_t)e->end_mark.index;
    n->weight = 1;
    return n;
}

/* Counts <weight> more nodes against the bound. */
static bool
count (struct builder *b, const yaml_mark_t *mark, uint32_t weight)
{
    if (weight > YAML_NODES_MAX - b->weight)
        return fail_at (b, mark, "too many values: more than 500000 once aliases are followed");
    b->weight += weight;
    return true;
}

/* Hands a finished node to the container it belongs to. */
static void
push (struct builder *b, struct yaml_node *n)
{
    if (! b->depth) {
        b->root = n;
        return;
    }
    struct frame *f = &b->frames[b->depth - 1];
    if (n->levels > f->levels_below)
        f->levels_below = n->levels;
    x_grow (b->stack, b->stack_len, b->stack_cap);
    b->stack[b->stack_len++] = n;
}

static bool
add_scalar (struct builder *b, const yaml_event_t *e)
{
    if (! count (b, &e->start_mark, 1))
        return false;
    struct yaml_node *n = node_at (b, e);
    n->len = (uint32_t)e->data.scalar.length;
    n->text = arena_strndup (b->arena, (const char *)e->data.scalar.value, n->len);
    n->is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (! settle_scalar (b, n, (const char *)e->data.scalar.tag))
        return fail_at (b, &e->start_mark, "the value is not what its tag says");
    if (memchr (n->text, 0, n->len))
        return fail_at (b, &e->start_mark, "a NUL character in a text");
    set_anchor (b, e->data.scalar.anchor, n, true);
    push (b, n);
    return true;
}

static bool
add_alias (struct builder *b, const yaml_event_t *e)
{
    struct anchor wanted = { .name = (const char *)e->data.alias.anchor };
    struct anchor **found = tfind (&wanted, &b->anchors, compare_anchors);
    if (! found)
        return fail_at (b, &e->start_mark, "an alias to an anchor that does not exist");
    if (! (*found)->is_closed)
        return fail_at (b, &e->start_mark, "an alias inside the value it stands for");
    struct yaml_node *n = (*found)->node;
    if (b->depth + n->levels > YAML_LEVELS_MAX)
        return fail_at (b, &e->start_mark, "nested more than 128 levels deep");
    if (! count (b, &e->start_mark, n->weight))
        return false;
    push (b, n);
    return true;
}

static bool
open_container (struct builder *b, const yaml_event_t *e, enum yaml_kind kind,
                const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (b->depth == YAML_LEVELS_MAX)
        return fail_at (b, &e->start_mark, "nested more than 128 levels deep");
    struct frame *f = &b->frames[b->depth];
    *f = (struct frame){ .stack_base = b->stack_len, .weight_base = b->weight };
    if (! count (b, &e->start_mark, 1))
        return false;
    f->node = node_at (b, e);
    f->node->kind = (uint8_t)kind;
    if (tag && strcmp ((const char *)tag, "!") != 0 && ! str_starts ((const char *)tag, CORE_TAG))
        f->node->tag = arena_strdup (b->arena, (const char *)tag);
    f->anchor = set_anchor (b, anchor, f->node, false);
    b->depth++;
    return true;
}

static int
compare_pairs (const void *x, const void *y)
{
    const struct yaml_node *a = (*(struct yaml_pair *const *)x)->key;
    const struct yaml_node *b = (*(struct yaml_pair *const *)y)->key;
    int order = strcmp (a->text, b->text);
    if (order)
        return order;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* The second of two equal keys that comes first in the file, or NULL. */
static const struct yaml_node *
find_duplicate (const struct yaml_node *map)
{
    struct yaml_pair *few[16];
    _cleanup_free_ struct yaml_pair **many = NULL;
    struct yaml_pair **sorted = few;
    if (map->len > ARRAY_LEN (few))
        sorted = many = x_new_array (struct yaml_pair *, map->len);
    size_t len = 0;
    for (uint32_t i = 0; i < map->len; i++)
        if (yaml_is_scalar (map->pairs[i].key))
            sorted[len++] = &map->pairs[i];
    qsort (sorted, len, sizeof *sorted, compare_pairs);
    const struct yaml_node *first = NULL;
    for (size_t i = 1; i < len; i++) {
        const struct yaml_node *key = sorted[i]->key;
        if (strcmp (sorted[i - 1]->key->text, key->text) == 0 &&
            (! first || key->start < first->start))
            first = key;
    }
    return first;
}

static bool
close_container (struct builder *b, const yaml_event_t *e)
{
    struct frame *f = &b->frames[--b->depth];
    struct yaml_node *n = f->node;
    struct yaml_node **children = b->stack ? b->stack + f->stack_base : NULL;
    size_t len = b->stack_len - f->stack_base;
    n->end = (uint32_t)e->end_mark.index;
    n->weight = b->weight - f->weight_base;
    n->levels = (uint8_t)(f->levels_below + 1);
    if (n->kind == YAML_LIST) {
        n->len = (uint32_t)len;
        n->items = arena_new_array (b->arena, struct yaml_node *, len);
        if (len)
            memcpy (n->items, children, len * sizeof *children);
    } else {
        n->len = (uint32_t)(len / 2);
        n->pairs = arena_new_array (b->arena, struct yaml_pair, len / 2);
        for (size_t i = 0; i + 1 < len; i += 2)
            n->pairs[i / 2] = (struct yaml_pair){ children[i], children[i + 1] };
        const struct yaml_node *twice = find_duplicate (n);
        if (twice)
            return mur_fail (b->err, b->code, "%s:%u:%u: the key '%s' is given twice", b->name,
                             twice->line, twice->column, twice->text);
    }
    b->stack_len = f->stack_base;
    if (f->anchor && f->anchor->node == n)
        f->anchor->is_closed = true;
    push (b, n);
    return true;
}

static bool
take_event (struct builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return b->root ? fail_at (b, &e->start_mark, "a second document; there may be only one")
                       : true;
    case YAML_SCALAR_EVENT:
        return add_scalar (b, e);
    case YAML_ALIAS_EVENT:
        return add_alias (b, e);
    case YAML_SEQUENCE_START_EVENT:
        return open_container (b, e, YAML_LIST, e->data.sequence_start.anchor,
                               e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_container (b, e, YAML_MAP, e->data.mapping_start.anchor,
                               e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_container (b, e);
    default:
        return true;
    }
}

/* The library's words name what it looked for; these say what is usually wrong. */
static void
hint_at_syntax (const struct builder *b)
{
    static const struct {
        const char *words, *hint;
    } known[] = {
        { "mapping values are not allowed",
          "is this line indented like its neighbours? A text that "
          "holds a colon and a blank is quoted" },
        { "while scanning a quoted scalar", "a quote is not closed" },
        { "while parsing a flow", "a bracket or a comma is missing" },
        { "did not find expected key", "is this line indented like its neighbours?" },
        { "expected <block end>", "is this line indented like its neighbours?" },
        { "could not find expected ':'", "a key ends with a colon and a blank" },
        { "found character that cannot start", "a text that begins so is quoted" },
    };
    for (size_t i = 0; b->err && *b->err && i < ARRAY_LEN (known); i++)
        if (strstr ((*b->err)->message, known[i].words)) {
            mur_hint (b->err, "%s", known[i].hint);
            return;
        }
}

/* Whether line <line> (from 0) is indented with a tab, or has one at <column>. */
static bool
has_tab_at (const struct builder *b, size_t line, size_t column)
{
    const char *at = b->text, *end = b->text + b->len;
    for (; line && at < end; line--) {
        const char *next = memchr (at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    size_t indent = 0;
    while (at + indent < end && at[indent] == ' ')
        indent++;
    bool is_indented_so = at + indent < end && at[indent] == '\t';
    return is_indented_so || (at + column < end && at[column] == '\t');
}

/* libyaml reads ahead of what it has understood, so the place is counted from its offset. */
static bool
fail_reading (const struct builder *b)
{
    size_t offset = b->parser.problem_offset < b->len ? b->parser.problem_offset : b->len;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        bool is_end = b->text[i] == '\n';
        bool is_first_byte = ((unsigned char)b->text[i] & 0xc0) != 0x80;
        line += is_end;
        column = is_end ? 1 : column + is_first_byte;
    }
    const char *problem = b->parser.problem ? b->parser.problem : "unreadable byte";
    if (strstr (problem, "control characters"))
        mur_fail (b->err, b->code, "%s:%zu:%zu: the control character 0x%02x, which no YAML holds",
                  b->name, line, column, (unsigned)b->parser.problem_value);
    else
        mur_fail (b->err, b->code, "%s:%zu:%zu: not UTF-8 text: %s", b->name, line, column,
                  problem);
    mur_hint (b->err, "save the file as UTF-8 text; in a double-quoted text such a character is "
                      "written as \\xNN");
    return false;
}

static bool
fail_syntax (struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR)
        alloc_out_of_memory ();
    size_t mark = merge_mark_line (b->text, b->len);
    if (mark)
        return mur_fail (b->err, b->code, "%s:%zu:1: a conflict mark of a merge", b->name, mark);
    if (p->error == YAML_SCANNER_ERROR &&
        has_tab_at (b, p->problem_mark.line, p->problem_mark.column))
        return mur_fail (b->err, b->code, "%s:%zu:%zu: a tab: YAML is indented with blanks",
                         b->name, p->problem_mark.line + 1, p->problem_mark.column + 1);
    if (p->error == YAML_READER_ERROR)
        return fail_reading (b);
    mur_fail (b->err, b->code, "%s:%zu:%zu: %s%s%s", b->name, p->problem_mark.line + 1,
              p->problem_mark.column + 1, p->problem ? p->problem : "not YAML",
              p->context ? " " : "", p->context ? p->context : "");
    hint_at_syntax (b);
    return false;
}

static bool
read_events (struct builder *b)
{
    for (bool at_end = false; ! at_end;) {
        yaml_event_t event;
        if (! yaml_parser_parse (&b->parser, &event))
            return fail_syntax (b);
        at_end = event.type == YAML_STREAM_END_EVENT;
        bool ok = take_event (b, &event);
        yaml_event_delete (&event);
        if (! ok)
            return false;
    }
    return true;
}

static bool
check_head (const char *text, size_t len, const char *name, enum diag_code code,
            struct mur_error **err)
{
    if (len > YAML_BYTES_MAX)
        return mur_fail (err, code, "%s: %zu bytes; a file of this kind has at most %u", name, len,
                         YAML_BYTES_MAX);
    static const char *const marks[] = { "\xef\xbb\xbf", "\xfe\xff", "\xff\xfe" };
    for (size_t i = 0; i < ARRAY_LEN (marks); i++)
        if (len >= strlen (marks[i]) && memcmp (text, marks[i], strlen (marks[i])) == 0) {
            mur_fail (err, code, "%s:1:1: the file begins with a byte-order mark", name);
            return mur_hint (err, "save it as UTF-8 without a byte-order mark");
        }
    return true;
}

struct yaml_node *
yaml_parse (struct arena *arena, const char *text, size_t len, const char *name,
            enum diag_code code, struct mur_error **err)
{
    if (! check_head (text, len, name, code, err))
        return NULL;
    struct builder b = {
        .text = text, .len = len, .arena = arena, .name = name, .code = code, .err = err
    };
    if (! yaml_parser_initialize (&b.parser))
        alloc_out_of_memory ();
    yaml_parser_set_encoding (&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string (&b.parser, (const unsigned char *)text, len);
    bool ok = read_events (&b);
    yaml_parser_delete (&b.parser);
    tdestroy (b.anchors, keep_anchor);
    free (b.stack);
    if (! ok)
        return NULL;
    if (! b.root || (b.root->kind == YAML_NULL && b.root->is_plain && ! b.root->len)) {
        b.root = arena_new0 (arena, struct yaml_node);
        b.root->kind = YAML_MAP;
        b.root->line = b.root->column = 1;
        b.root->levels = 1;
        b.root->weight = 1;
    }
    if (b.root->kind != YAML_MAP) {
        mur_fail (err, code, "%s:%u:%u: a map of keys belongs here, not a %s", name, b.root->line,
                  b.root->column, yaml_kind_name (b.root));
        return NULL;
    }
    return b.root;
}

bool
yaml_read_text (const char *path, enum diag_code too_large, struct buf *out, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    if (fs_read_path (path, YAML_BYTES_MAX, out, &caught))
        return true;
    if (caught->errno_value == EFBIG) {
        _cleanup_free_ char *shown = fs_shown_path (path);
        return mur_fail (err, too_large, "%s: a file of this kind has at most %u bytes", shown,
                         YAML_BYTES_MAX);
    }
    if (caught->code != E_IO_001)
        caught->code = E_IO_003;
    return mur_propagate (err, steal_ptr (&caught));
}

struct yaml_node *
yaml_read_file (struct arena *arena, const char *path, enum diag_code code, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! yaml_read_text (path, code, &text, err))
        return NULL;
    return yaml_parse (arena, text.data ? text.data : "", text.len, path, code, err);
}
