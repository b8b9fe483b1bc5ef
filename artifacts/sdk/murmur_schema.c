/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas lowered (murmur_schema.h).
 *
 * Providers want an object with `properties` at the root, without alternatives beside it; most do
 * not follow references; words of older drafts are refused by those that check. So references are
 * written out where they stand, alternatives at the root become one object that takes each of them,
 * and words that say nothing in a call are left out. Always true: what is lowered takes every input
 * that the schema took.
 */
#include "murmur_schema.h"
#include "murmur_internal.h"
#include "murmur_names.h"

#define DEPTH_LIMIT      12    /* references within references */
#define ROOT_DEPTH_LIMIT 4     /* alternatives within alternatives */
#define SIZE_LIMIT       65536 /* references are written out up to here */

struct lowering {
    const struct mur_json *json;
    mur_node root; /* what `#` is */
    enum mur_schema_form form;
    struct mur_text *to;
    size_t start;
    mur_node open[DEPTH_LIMIT]; /* what is being written out in place of references */
};

/* --- What stands where --- */

static mur_node
member (const struct lowering *l, mur_node object, const char *key)
{
    return mur_json_get (l->json, object, key);
}

static bool
is_kind (const struct lowering *l, mur_node node, enum mur_json_kind kind)
{
    return mur_json_kind (l->json, node) == kind;
}

/* One step of a JSON pointer; `~1` and `~0` are a slash and a tilde. */
static mur_node
step_into (const struct lowering *l, mur_node node, const char *step, size_t len)
{
    struct mur_text key = { 0 };
    for (size_t i = 0; i < len; i++) {
        bool is_escape = step[i] == '~' && i + 1 < len;
        char c = ! is_escape ? step[i] : step[++i] == '1' ? '/' : '~';
        mur_text_add (&key, &c, 1);
    }
    mur_text_add (&key, "", 0);
    mur_node found = is_kind (l, node, MUR_JSON_ARRAY)
                         ? mur_json_at (l->json, node, (size_t)strtoul (key.data, NULL, 10))
                         : member (l, node, key.data);
    mur_text_free (&key);
    return found;
}

/* What a reference within the document leads to, through references; -1 for any other. */
static mur_node
resolve (const struct lowering *l, mur_node schema)
{
    for (int hops = 0; hops < DEPTH_LIMIT; hops++) {
        char *ref = mur_json_text (l->json, member (l, schema, "$ref"));
        if (ref == NULL)
            return schema;
        mur_node at = *ref == '#' ? l->root : -1;
        for (const char *step = ref + 1; at >= 0 && *step == '/';) {
            size_t len = strcspn (step + 1, "/");
            at = step_into (l, at, step + 1, len);
            step += 1 + len;
        }
        free (ref);
        schema = at;
        if (schema < 0)
            break;
    }
    return -1;
}

/* --- Words --- */

/* Left out everywhere: they say where a schema is from, not what it takes. */
static const char *const dropped[] = { "$schema",         "$id",          "$anchor",
                                       "$comment",        "$defs",        "definitions",
                                       "additionalItems", "dependencies", NULL };

/* All that the small form knows. */
static const char *const small[] = { "type",     "description", "enum",      "items",
                                     "required", "properties",  "minItems",  "maxItems",
                                     "minimum",  "maximum",     "minLength", "maxLength",
                                     "anyOf",    "nullable",    "title",     NULL };

/* What a word's value must be, a bit for each kind; others say nothing that a provider takes. */
#define KIND(kind) (1u << MUR_JSON_##kind)
static const struct {
    const char *word;
    unsigned kinds;
} fitting[] = {
    { "description", KIND (STRING) },
    { "title", KIND (STRING) },
    { "format", KIND (STRING) },
    { "pattern", KIND (STRING) },
    { "enum", KIND (ARRAY) },
    { "required", KIND (ARRAY) },
    { "examples", KIND (ARRAY) },
    { "anyOf", KIND (ARRAY) },
    { "oneOf", KIND (ARRAY) },
    { "allOf", KIND (ARRAY) },
    { "properties", KIND (OBJECT) },
    { "patternProperties", KIND (OBJECT) },
    { "additionalProperties", KIND (OBJECT) | KIND (BOOL) },
    { "nullable", KIND (BOOL) },
    { "uniqueItems", KIND (BOOL) },
    { "minimum", KIND (NUMBER) },
    { "maximum", KIND (NUMBER) },
    { "minLength", KIND (NUMBER) },
    { "maxLength", KIND (NUMBER) },
    { "minItems", KIND (NUMBER) },
    { "maxItems", KIND (NUMBER) },
    { "multipleOf", KIND (NUMBER) },
};

static const char *const types[] = { "object",  "array",   "string", "number",
                                     "integer", "boolean", "null",   NULL };

/* Their values are objects of schemas, under names of somebody's. */
static const char *const maps[] = { "properties", "patternProperties", "dependentSchemas", NULL };

static bool
is_among (const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp (word, *words) == 0)
            return true;
    return false;
}

/* The word of a `type` as JSON Schema spells it, or NULL for none of its words ("any", ""). */
static const char *
type_word (const struct lowering *l, mur_node type)
{
    char *written = mur_json_text (l->json, type);
    const char *found = NULL;
    for (size_t i = 0; written != NULL && types[i] != NULL; i++)
        if (strcasecmp (written, types[i]) == 0)
            found = types[i];
    free (written);
    return found;
}

/* True of a value that its word can have; an empty choice leaves nothing to choose. */
static bool
is_fit (const struct lowering *l, const char *key, mur_node value)
{
    for (size_t i = 0; i < sizeof (fitting) / sizeof (fitting[0]); i++)
        if (strcmp (key, fitting[i].word) == 0 &&
            ! (fitting[i].kinds & 1u << mur_json_kind (l->json, value)))
            return false;
    bool is_choice = strcmp (key, "enum") == 0 || strcmp (key, "anyOf") == 0 ||
                     strcmp (key, "oneOf") == 0 || strcmp (key, "allOf") == 0;
    return ! is_choice || mur_json_count (l->json, value) > 0;
}

static bool
takes_nothing (const struct lowering *l, mur_node schema)
{
    return is_kind (l, schema, MUR_JSON_BOOL) && ! mur_json_bool (l->json, schema, true);
}

static void lower (struct lowering *l, mur_node schema, int depth);

static void
lower_list (struct lowering *l, const char *key, mur_node list, int depth)
{
    mur_text_key (l->to, key);
    mur_text_puts (l->to, "[");
    for (mur_node n = mur_json_first (l->json, list); n >= 0; n = mur_json_next (l->json, n)) {
        mur_text_comma (l->to);
        lower (l, n, depth);
    }
    mur_text_puts (l->to, "]");
}

/* Adds the members of an object of schemas; `false` takes nothing, so its member is left out. */
static void
lower_properties (struct lowering *l, mur_node properties, int depth)
{
    for (mur_node n = mur_json_first (l->json, properties); n >= 0;
         n = mur_json_next (l->json, n)) {
        char *key = takes_nothing (l, n) ? NULL : mur_json_key (l->json, n);
        if (key != NULL) {
            mur_text_key (l->to, key);
            lower (l, n, depth);
        }
        free (key);
    }
}

/* `type`, which may be a list: the small form takes one, and `nullable` beside it. */
static void
lower_type (struct lowering *l, mur_node type)
{
    bool is_list = is_kind (l, type, MUR_JSON_ARRAY), is_nullable = false;
    bool is_small = l->form == MUR_SCHEMA_SMALL;
    const char *words[8];
    size_t count = 0;
    for (mur_node n = is_list ? mur_json_first (l->json, type) : type; n >= 0;
         n = is_list ? mur_json_next (l->json, n) : -1) {
        const char *word = type_word (l, n);
        bool is_null = is_small && is_list && word != NULL && strcmp (word, "null") == 0;
        is_nullable = is_nullable || is_null;
        if (word != NULL && ! is_null && count < sizeof (words) / sizeof (words[0]))
            words[count++] = word;
    }
    if (count > 0) {
        bool is_one = is_small || ! is_list;
        mur_text_key (l->to, "type");
        mur_text_puts (l->to, is_one ? "" : "[");
        for (size_t i = 0; i < (is_one ? 1 : count); i++) {
            mur_text_puts (l->to, i ? "," : "");
            mur_text_json (l->to, words[i]);
        }
        mur_text_puts (l->to, is_one ? "" : "]");
    }
    if (is_nullable) {
        mur_text_key (l->to, "nullable");
        mur_text_puts (l->to, "true");
    }
}

/* `required`, of texts; the small form knows no member that is not among `properties`. */
static void
lower_required (struct lowering *l, mur_node schema, mur_node names)
{
    mur_node properties = member (l, schema, "properties");
    bool has_any = false;
    for (mur_node n = mur_json_first (l->json, names); n >= 0; n = mur_json_next (l->json, n)) {
        char *name = mur_json_text (l->json, n);
        mur_node own = name != NULL ? member (l, properties, name) : -1;
        if (name != NULL &&
            (l->form != MUR_SCHEMA_SMALL || (own >= 0 && ! takes_nothing (l, own)))) {
            if (! has_any)
                mur_text_key (l->to, "required");
            mur_text_puts (l->to, has_any ? "," : "[");
            mur_text_json (l->to, name);
            has_any = true;
        }
        free (name);
    }
    mur_text_puts (l->to, has_any ? "]" : "");
}

/* The small form's `enum` holds texts. */
static void
lower_enum (struct lowering *l, mur_node values)
{
    bool is_text = true;
    for (mur_node n = mur_json_first (l->json, values); n >= 0; n = mur_json_next (l->json, n))
        is_text = is_text && is_kind (l, n, MUR_JSON_STRING);
    if (is_text)
        mur_text_node (l->to, "enum", l->json, values);
}

/* A limit that draft 4 said with a truth value beside the number. */
static bool
lower_bound (struct lowering *l, mur_node schema, const char *key, mur_node value)
{
    static const char *const pairs[][2] = { { "minimum", "exclusiveMinimum" },
                                            { "maximum", "exclusiveMaximum" } };
    for (size_t i = 0; i < 2; i++) {
        mur_node exclusive = member (l, schema, pairs[i][1]);
        if (strcmp (key, pairs[i][1]) == 0 && is_kind (l, value, MUR_JSON_BOOL))
            return true;
        if (strcmp (key, pairs[i][0]) == 0 && mur_json_bool (l->json, exclusive, false) &&
            l->form != MUR_SCHEMA_SMALL) {
            mur_text_node (l->to, pairs[i][1], l->json, value);
            return true;
        }
    }
    return false;
}

/* A tuple's items become the alternatives of one. */
static void
lower_items (struct lowering *l, mur_node items, int depth)
{
    if (is_kind (l, items, MUR_JSON_ARRAY) && mur_json_count (l->json, items) > 0) {
        mur_text_key (l->to, "items");
        mur_text_puts (l->to, "{");
        lower_list (l, "anyOf", items, depth);
        mur_text_puts (l->to, "}");
        return;
    }
    mur_text_key (l->to, "items");
    lower (l, is_kind (l, items, MUR_JSON_OBJECT) ? items : -1, depth);
}

static void
lower_member (struct lowering *l, mur_node schema, const char *key, mur_node value, int depth)
{
    static const char *const of_schemas[] = { "not",           "if",       "then",
                                              "else",          "contains", "additionalProperties",
                                              "propertyNames", NULL };
    static const char *const of_lists[] = { "anyOf", "oneOf", "allOf", "prefixItems", NULL };
    bool is_small = l->form == MUR_SCHEMA_SMALL;
    if (is_small && strcmp (key, "oneOf") == 0)
        key = "anyOf";
    if (is_small && strcmp (key, "const") == 0 && is_kind (l, value, MUR_JSON_STRING)) {
        mur_text_key (l->to, "enum");
        mur_text_puts (l->to, "[");
        mur_text_node (l->to, NULL, l->json, value);
        mur_text_puts (l->to, "]");
        return;
    }
    if (is_among (key, dropped) || (is_small && ! is_among (key, small)) ||
        ! is_fit (l, key, value) || lower_bound (l, schema, key, value))
        return;
    if (strcmp (key, "items") == 0) {
        lower_items (l, value, depth);
    } else if (strcmp (key, "type") == 0) {
        lower_type (l, value);
    } else if (strcmp (key, "required") == 0) {
        lower_required (l, schema, value);
    } else if (is_small && strcmp (key, "enum") == 0) {
        lower_enum (l, value);
    } else if (is_among (key, of_lists) && is_kind (l, value, MUR_JSON_ARRAY)) {
        lower_list (l, key, value, depth);
    } else if (is_among (key, maps) && is_kind (l, value, MUR_JSON_OBJECT)) {
        mur_text_key (l->to, key);
        mur_text_puts (l->to, "{");
        lower_properties (l, value, depth);
        mur_text_puts (l->to, "}");
    } else if (is_among (key, of_schemas) && is_kind (l, value, MUR_JSON_OBJECT)) {
        mur_text_key (l->to, key);
        lower (l, value, depth);
    } else {
        mur_text_node (l->to, key, l->json, value);
    }
}

/* A schema that refers to itself is written out twice. */
static bool
may_write_out (struct lowering *l, mur_node found, int depth)
{
    int times = 0;
    for (int i = 0; i < depth; i++)
        times += l->open[i] == found;
    if (depth >= DEPTH_LIMIT || times > 1 || l->to->len - l->start > SIZE_LIMIT)
        return false;
    l->open[depth] = found;
    return true;
}

/* A schema below the root. What cannot be written out any further takes everything. */
static void
lower (struct lowering *l, mur_node schema, int depth)
{
    mur_node found = resolve (l, schema);
    bool is_reference = found != schema;
    mur_text_puts (l->to, "{");
    if (is_kind (l, found, MUR_JSON_OBJECT) &&
        (! is_reference || may_write_out (l, found, depth))) {
        if (is_reference)
            mur_text_node (l->to, "description", l->json, member (l, schema, "description"));
        bool has_own = is_reference && member (l, schema, "description") >= 0;
        for (mur_node n = mur_json_first (l->json, found); n >= 0; n = mur_json_next (l->json, n)) {
            char *key = mur_json_key (l->json, n);
            if (! (has_own && strcmp (key, "description") == 0))
                lower_member (l, found, key, n, depth + (is_reference ? 1 : 0));
            free (key);
        }
        if (mur_json_is (l->json, member (l, found, "type"), "array") &&
            member (l, found, "items") < 0 && member (l, found, "prefixItems") < 0)
            mur_text_puts (l->to, ",\"items\":{}");
    }
    mur_text_puts (l->to, "}");
}

/* --- The root --- */

static const char *const alternatives[] = { "anyOf", "oneOf", "allOf", NULL };

#define CHOICES_LIMIT 16

/* The different schemas of one property. */
struct choices {
    mur_node items[CHOICES_LIMIT];
    size_t count;
};

static void
add_choice (const struct lowering *l, struct choices *choices, mur_node schema)
{
    size_t len, other_len;
    const char *raw = mur_json_raw (l->json, schema, &len);
    for (size_t i = 0; i < choices->count; i++) {
        const char *other = mur_json_raw (l->json, choices->items[i], &other_len);
        if (len == other_len && memcmp (raw, other, len) == 0)
            return;
    }
    if (len > 0 && choices->count < CHOICES_LIMIT && ! takes_nothing (l, schema))
        choices->items[choices->count++] = schema;
}

/* Calls `each` for the root and for all that stands beside it as alternatives. */
static void
walk_root (struct lowering *l, mur_node schema, int depth,
           void (*each) (struct lowering *, mur_node found, void *context), void *context)
{
    mur_node found = resolve (l, schema);
    if (! is_kind (l, found, MUR_JSON_OBJECT) || depth > ROOT_DEPTH_LIMIT)
        return;
    each (l, found, context);
    for (const char *const *word = alternatives; *word != NULL; word++) {
        mur_node list = member (l, found, *word);
        for (mur_node n = mur_json_first (l->json, list); n >= 0; n = mur_json_next (l->json, n))
            walk_root (l, n, depth + 1, each, context);
    }
}

struct wanted {
    const char *key;
    struct choices choices;
};

static void
gather (struct lowering *l, mur_node found, void *context)
{
    struct wanted *wanted = context;
    add_choice (l, &wanted->choices, member (l, member (l, found, "properties"), wanted->key));
}

/* An input's name as the form spells it. */
static char *
name_of (const struct lowering *l, const char *key)
{
    struct mur_text name = { 0 };
    if (l->form == MUR_SCHEMA_NARROW)
        mur_narrow_name (key, &name);
    else
        mur_text_puts (&name, key);
    return name.data;
}

/* One property of the root: what any of the alternatives takes. */
static void
add_property (struct lowering *l, const char *key)
{
    struct wanted wanted = { .key = key };
    walk_root (l, l->root, 0, gather, &wanted);
    if (wanted.choices.count == 0)
        return;
    char *name = name_of (l, key);
    mur_text_key (l->to, name);
    free (name);
    if (wanted.choices.count == 1) {
        lower (l, wanted.choices.items[0], 0);
        return;
    }
    mur_text_puts (l->to, "{\"anyOf\":[");
    for (size_t i = 0; i < wanted.choices.count; i++) {
        mur_text_comma (l->to);
        lower (l, wanted.choices.items[i], 0);
    }
    mur_text_puts (l->to, "]}");
}

static void
add_properties (struct lowering *l, mur_node found, void *context)
{
    struct mur_text *seen = context;
    mur_node properties = member (l, found, "properties");
    for (mur_node n = mur_json_first (l->json, properties); n >= 0;
         n = mur_json_next (l->json, n)) {
        char *key = mur_json_key (l->json, n);
        char *mark = mur_format ("\n%s\n", key);
        if (seen->len == 0 || strstr (seen->data, mark) == NULL) {
            mur_text_puts (seen, mark);
            add_property (l, key);
        }
        free (mark);
        free (key);
    }
}

/* True when each input must have the member: the root, one of all, or each alternative says so. */
static bool
is_required (const struct lowering *l, mur_node schema, const char *key, int depth)
{
    mur_node found = resolve (l, schema);
    mur_node required = member (l, found, "required");
    for (mur_node n = mur_json_first (l->json, required); n >= 0; n = mur_json_next (l->json, n))
        if (mur_json_is (l->json, n, key))
            return true;
    for (const char *const *word = alternatives; *word != NULL && depth < ROOT_DEPTH_LIMIT;
         word++) {
        mur_node list = member (l, found, *word);
        bool is_all = strcmp (*word, "allOf") == 0;
        size_t count = 0, total = 0;
        for (mur_node n = mur_json_first (l->json, list); n >= 0; n = mur_json_next (l->json, n)) {
            total++;
            count += is_required (l, n, key, depth + 1);
        }
        if (count > 0 && (is_all || count == total))
            return true;
    }
    return false;
}

static void
add_required (struct lowering *l, const struct mur_text *seen)
{
    bool has_any = false;
    for (const char *at = seen->data; at != NULL && *at == '\n';) {
        size_t len = strcspn (at + 1, "\n");
        char *key = copy_bytes (at + 1, len);
        if (is_required (l, l->root, key, 0)) {
            mur_text_puts (l->to, has_any ? "," : ",\"required\":[");
            char *name = name_of (l, key);
            mur_text_json (l->to, name);
            free (name);
            has_any = true;
        }
        free (key);
        at += len + 2;
    }
    if (has_any)
        mur_text_puts (l->to, "]");
}

/* True of a member that may stay as it is; of a map of schemas the key is a name of somebody's. */
static bool
is_member_in_order (const struct lowering *l, const char *key, mur_node value, bool is_map)
{
    static const char *const odd[] = { "$ref", "exclusiveMinimum", "exclusiveMaximum", NULL };
    if (is_map)
        return is_kind (l, value, MUR_JSON_OBJECT);
    if (is_among (key, odd) || is_among (key, dropped) || ! is_fit (l, key, value))
        return false;
    if (strcmp (key, "items") == 0)
        return is_kind (l, value, MUR_JSON_OBJECT);
    if (strcmp (key, "type") != 0 || is_kind (l, value, MUR_JSON_ARRAY))
        return true;
    const char *word = type_word (l, value);
    return word != NULL && mur_json_is (l->json, value, word);
}

/* True when nothing of the schema needs another form, at any depth. */
static bool
is_in_order (const struct lowering *l, mur_node node, bool is_map)
{
    if (! is_map && is_kind (l, node, MUR_JSON_OBJECT) &&
        mur_json_is (l->json, member (l, node, "type"), "array") && member (l, node, "items") < 0)
        return false;
    for (mur_node n = mur_json_first (l->json, node); n >= 0; n = mur_json_next (l->json, n)) {
        char *key = is_kind (l, node, MUR_JSON_OBJECT) ? mur_json_key (l->json, n) : NULL;
        bool is_good = key == NULL || is_member_in_order (l, key, n, is_map);
        bool is_map_too = key != NULL && ! is_map && is_among (key, maps);
        free (key);
        if (! is_good || ! is_in_order (l, n, is_map_too))
            return false;
    }
    return true;
}

/* True when an input's name has to be narrowed. */
static bool
has_wide_names (const struct lowering *l)
{
    bool is_wide = false;
    mur_node properties = member (l, l->root, "properties");
    for (mur_node n = mur_json_first (l->json, properties); n >= 0 && ! is_wide;
         n = mur_json_next (l->json, n)) {
        char *key = mur_json_key (l->json, n);
        is_wide = l->form == MUR_SCHEMA_NARROW && ! mur_is_narrow (key);
        free (key);
    }
    return is_wide;
}

static bool
has_alternatives (const struct lowering *l)
{
    for (const char *const *word = alternatives; *word != NULL; word++)
        if (member (l, l->root, *word) >= 0)
            return true;
    return member (l, l->root, "enum") >= 0 || member (l, l->root, "not") >= 0;
}

void
mur_schema_lower (const struct mur_json *json, mur_node schema, enum mur_schema_form form,
                  struct mur_text *to)
{
    struct lowering l = { .json = json, .root = schema, .form = form, .to = to, .start = to->len };
    struct mur_text seen = { 0 };
    static const char *const own[] = { "type", "properties", "required", "anyOf", "oneOf", "allOf",
                                       "enum", "not",        "$ref",     "const", NULL };
    if (! is_kind (&l, schema, MUR_JSON_OBJECT)) {
        mur_text_puts (to, "{\"type\":\"object\",\"properties\":{}}");
        return;
    }
    if (form != MUR_SCHEMA_SMALL && mur_json_is (json, member (&l, schema, "type"), "object") &&
        is_kind (&l, member (&l, schema, "properties"), MUR_JSON_OBJECT) &&
        ! has_alternatives (&l) && ! has_wide_names (&l) && is_in_order (&l, schema, false)) {
        mur_text_node (to, NULL, json, schema);
        return;
    }
    mur_text_puts (to, "{\"type\":\"object\",\"properties\":{");
    walk_root (&l, schema, 0, add_properties, &seen);
    mur_text_puts (to, "}");
    add_required (&l, &seen);
    for (mur_node n = mur_json_first (json, schema); n >= 0; n = mur_json_next (json, n)) {
        char *key = mur_json_key (json, n);
        if (! is_among (key, own))
            lower_member (&l, schema, key, n, 0);
        free (key);
    }
    mur_text_puts (to, "}");
    mur_text_free (&seen);
}
