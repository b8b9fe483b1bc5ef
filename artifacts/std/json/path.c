/* SPDX-License-Identifier: Apache-2.0
 *
 * JSONPath for std/json (path.h says what each function does): names, indexes, slices, wildcards,
 * unions, descent, and filters of one comparison.
 */
#include "path.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum selector_kind {
    SELECT_NAME,
    SELECT_INDEX,
    SELECT_SLICE,
    SELECT_ALL,
    SELECT_FILTER,
};

enum comparison {
    COMPARE_EXISTS,
    COMPARE_EQUAL,
    COMPARE_UNEQUAL,
    COMPARE_AT_MOST,
    COMPARE_AT_LEAST,
    COMPARE_LESS,
    COMPARE_MORE,
};

struct selector {
    enum selector_kind kind;
    char *name;
    int64_t first, last, step;
    bool has_first, has_last;
    struct path *subject; /* of a filter, below the item */
    enum comparison comparison;
    struct value *operand;
    struct selector *next; /* of the same brackets */
};

struct segment {
    struct selector *selectors;
    bool descends;
    struct segment *next;
};

struct path {
    struct segment *first;
    char *pointer; /* instead */
};

/* --- Reading --- */

struct reader {
    const char *at;
    const char *start;
    char *error;
};

static void *
fail (struct reader *r, const char *what)
{
    if (r->error == NULL)
        r->error = mur_format ("%s at character %zu of %s", what, (size_t)(r->at - r->start) + 1,
                               r->start);
    return NULL;
}

static void *
new_part (size_t size)
{
    void *part = calloc (1, size);
    if (part == NULL)
        abort ();
    return part;
}

static void
skip_blanks (struct reader *r)
{
    r->at += strspn (r->at, " \t\n\r");
}

static bool
takes (struct reader *r, const char *word)
{
    skip_blanks (r);
    size_t len = strlen (word);
    if (strncmp (r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static char *
read_name (struct reader *r)
{
    const char *from = r->at;
    while (isalnum ((unsigned char)*r->at) || *r->at == '_' || *r->at == '-' || *r->at == '@' ||
           (unsigned char)*r->at >= 0x80)
        r->at++;
    if (r->at == from)
        return fail (r, "a name is needed");
    return mur_format ("%.*s", (int)(r->at - from), from);
}

/* Both quotes; a backslash takes the next character as it is. */
static char *
read_quoted (struct reader *r)
{
    char quote = *r->at++;
    struct mur_text text = { 0 };
    mur_text_puts (&text, "");
    for (; *r->at != '\0' && *r->at != quote; r->at++) {
        if (*r->at == '\\' && r->at[1] != '\0')
            r->at++;
        mur_text_add (&text, r->at, 1);
    }
    if (*r->at == '\0')
        return fail (r, "a quote is open");
    r->at++;
    return text.data;
}

static bool
read_number (struct reader *r, int64_t *number)
{
    char *end;
    skip_blanks (r);
    *number = strtoll (r->at, &end, 10);
    bool is_number = end != r->at;
    r->at = end;
    return is_number;
}

static struct selector *
read_slice (struct reader *r)
{
    struct selector *s = new_part (sizeof *s);
    s->step = 1;
    s->has_first = read_number (r, &s->first);
    if (! takes (r, ":")) {
        s->kind = SELECT_INDEX;
        return s->has_first ? s : fail (r, "a name in quotes, an index, *, ? or a slice is needed");
    }
    s->kind = SELECT_SLICE;
    s->has_last = read_number (r, &s->last);
    if (takes (r, ":"))
        (void)read_number (r, &s->step);
    return s->step > 0 ? s : fail (r, "a slice goes forwards");
}

static struct path *read_segments (struct reader *r);

static struct value *
read_operand (struct reader *r)
{
    struct mur_text text = { 0 };
    skip_blanks (r);
    mur_text_puts (&text, "[");
    if (*r->at == '\'' || *r->at == '"') {
        char *string = read_quoted (r);
        mur_text_json (&text, string != NULL ? string : "");
    } else {
        size_t len = strcspn (r->at, " \t\r\n)],&|");
        mur_text_add (&text, r->at, len);
        r->at += len;
    }
    mur_text_puts (&text, "]");
    if (! mur_json_check (text.data, text.len, NULL))
        return fail (r, "a string, number, true, false or null is needed");
    struct mur_json *json = mur_json_parse (text.data, text.len);
    mur_node node = mur_json_first (json, 0);
    return node < 0 ? fail (r, "a value to compare with is needed") : value_new (json, node);
}

static struct selector *
read_filter (struct reader *r)
{
    static const struct {
        const char *word;
        enum comparison comparison;
    } words[] = { { "==", COMPARE_EQUAL },    { "!=", COMPARE_UNEQUAL }, { "<=", COMPARE_AT_MOST },
                  { ">=", COMPARE_AT_LEAST }, { "<", COMPARE_LESS },     { ">", COMPARE_MORE } };
    struct selector *s = new_part (sizeof *s);
    s->kind = SELECT_FILTER;
    bool is_in_parentheses = takes (r, "(");
    if (! takes (r, "@"))
        return fail (r, "@ is needed");
    s->subject = read_segments (r);
    if (s->subject != NULL && ! path_is_single (s->subject))
        return fail (r, "a filter compares one value");
    for (size_t i = 0; i < sizeof words / sizeof *words && s->comparison == COMPARE_EXISTS; i++)
        if (takes (r, words[i].word))
            s->comparison = words[i].comparison;
    if (s->comparison != COMPARE_EXISTS)
        s->operand = read_operand (r);
    if (is_in_parentheses && ! takes (r, ")"))
        return fail (r, ") is needed: a filter is one comparison");
    return s;
}

static struct selector *
read_selector (struct reader *r)
{
    struct selector *s = NULL;
    skip_blanks (r);
    if (*r->at == '\'' || *r->at == '"') {
        s = new_part (sizeof *s);
        s->name = read_quoted (r);
    } else if (takes (r, "*")) {
        s = new_part (sizeof *s);
        s->kind = SELECT_ALL;
    } else {
        s = takes (r, "?") ? read_filter (r) : read_slice (r);
    }
    return r->error == NULL ? s : NULL;
}

static struct selector *
read_brackets (struct reader *r)
{
    struct selector *first = NULL, **link = &first;
    do {
        *link = read_selector (r);
        if (*link == NULL)
            return NULL;
        link = &(*link)->next;
    } while (takes (r, ","));
    return takes (r, "]") ? first : fail (r, "] is needed");
}

static struct path *
read_segments (struct reader *r)
{
    struct path *path = new_part (sizeof *path);
    struct segment **link = &path->first;
    while (r->error == NULL && (*r->at == '.' || *r->at == '[')) {
        struct segment *segment = new_part (sizeof *segment);
        bool has_dot = *r->at == '.';
        r->at += has_dot;
        segment->descends = has_dot && *r->at == '.';
        r->at += segment->descends;
        if (has_dot && *r->at != '[' && *r->at != '*') {
            segment->selectors = new_part (sizeof *segment->selectors);
            segment->selectors->name = read_name (r);
        } else if (has_dot && *r->at == '*') {
            segment->selectors = new_part (sizeof *segment->selectors);
            segment->selectors->kind = SELECT_ALL;
            r->at++;
        } else {
            r->at++;
            segment->selectors = read_brackets (r);
        }
        *link = segment;
        link = &segment->next;
    }
    return r->error == NULL ? path : NULL;
}

struct path *
path_read (const char *text, char **error)
{
    if (*text == '/' || *text == '\0') {
        struct path *path = new_part (sizeof *path);
        path->pointer = mur_format ("%s", text);
        return path;
    }
    bool is_bare = *text != '$' && *text != '.' && *text != '[';
    char *whole =
        strcmp (text, ".") == 0 ? mur_format ("$") : mur_format ("%s%s", is_bare ? "." : "", text);
    struct reader r = { .at = whole, .start = whole };
    r.at += *whole == '$';
    struct path *path = read_segments (&r);
    skip_blanks (&r);
    if (r.error == NULL && *r.at != '\0')
        fail (&r, "this is not understood");
    *error = r.error;
    return r.error == NULL ? path : NULL;
}

bool
path_is_single (const struct path *path)
{
    for (const struct segment *s = path->first; s != NULL; s = s->next)
        if (s->descends || s->selectors->next != NULL || s->selectors->kind > SELECT_INDEX)
            return false;
    return true;
}

/* --- Walking --- */

struct walk {
    bool (*take) (void *context, struct value *value);
    void *context;
    bool is_over;
};

static void walk_segment (struct walk *walk, const struct segment *segment, struct value *at);

static void
walk_on (struct walk *walk, const struct segment *segment, struct value *at)
{
    if (at == NULL || walk->is_over)
        return;
    if (segment->next != NULL)
        walk_segment (walk, segment->next, at);
    else
        walk->is_over = ! walk->take (walk->context, at);
}

static bool
keep_first (void *context, struct value *value)
{
    *(struct value **)context = value;
    return false;
}

/* Order is between two numbers or two strings. */
static bool
is_in_order (enum comparison comparison, const struct value *a, const struct value *b)
{
    double difference;
    if (a->kind == MUR_JSON_NUMBER && b->kind == MUR_JSON_NUMBER)
        difference = value_number (a) - value_number (b);
    else if (a->kind == MUR_JSON_STRING && b->kind == MUR_JSON_STRING)
        difference = strcmp (a->text, b->text);
    else
        return false;
    return comparison == COMPARE_LESS      ? difference < 0
           : comparison == COMPARE_MORE    ? difference > 0
           : comparison == COMPARE_AT_MOST ? difference <= 0
                                           : difference >= 0;
}

static bool
passes (const struct selector *s, struct value *item)
{
    struct value *subject = NULL;
    path_walk (s->subject, item, keep_first, &subject);
    switch (s->comparison) {
    case COMPARE_EXISTS:
        return subject != NULL;
    case COMPARE_EQUAL:
        return subject != NULL && value_equals (subject, s->operand);
    case COMPARE_UNEQUAL:
        return subject == NULL || ! value_equals (subject, s->operand);
    default:
        return subject != NULL && is_in_order (s->comparison, subject, s->operand);
    }
}

static void
walk_selector (struct walk *walk, const struct segment *segment, const struct selector *s,
               struct value *at)
{
    int64_t count = (int64_t)at->count, position = 0;
    int64_t first = s->has_first ? s->first : 0, last = s->has_last ? s->last : count;
    if (s->kind == SELECT_NAME) {
        walk_on (walk, segment, value_member (at, s->name));
        return;
    }
    first += first < 0 ? count : 0;
    last += last < 0 ? count : 0;
    if (s->kind == SELECT_INDEX) {
        walk_on (walk, segment, first < 0 ? NULL : value_item (at, (size_t)first));
        return;
    }
    first = first < 0 ? 0 : first;
    for (struct value *c = at->first; c != NULL && ! walk->is_over; c = c->next, position++) {
        bool is_chosen = s->kind == SELECT_ALL || (s->kind == SELECT_FILTER && passes (s, c));
        if (s->kind == SELECT_SLICE)
            is_chosen = at->kind == MUR_JSON_ARRAY && position >= first && position < last &&
                        (position - first) % s->step == 0;
        if (is_chosen)
            walk_on (walk, segment, c);
    }
}

static void
walk_segment (struct walk *walk, const struct segment *segment, struct value *at)
{
    for (const struct selector *s = segment->selectors; s != NULL; s = s->next)
        walk_selector (walk, segment, s, at);
    for (struct value *c = at->first; segment->descends && c != NULL && ! walk->is_over;
         c = c->next)
        walk_segment (walk, segment, c);
}

void
path_walk (const struct path *path, struct value *root,
           bool (*take) (void *context, struct value *value), void *context)
{
    struct walk walk = { .take = take, .context = context };
    struct value *found = path->pointer != NULL ? value_find (root, path->pointer) : root;
    if (path->first != NULL)
        walk_segment (&walk, path->first, root);
    else if (found != NULL)
        take (context, found);
}
