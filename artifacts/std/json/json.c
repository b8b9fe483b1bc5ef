/* SPDX-License-Identifier: Apache-2.0
 *
 * std/json: finds values in a JSON file and changes it (README.md says its input).
 *
 * A change is all or nothing: the file is written once, when every operation went well. Always
 * true: what was not touched keeps its bytes, and no answer is longer than its bound without saying
 * so.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "path.h"
#include "tree.h"

#define FILE_LIMIT_BYTES   (4u << 20)
#define ANSWER_LIMIT_BYTES (64u << 10)

struct call {
    const struct mur_json *input;
    struct mur_result *out;
    char *path;
    char *text; /* of the file; NULL when it is new */
    size_t len;
    struct value *root; /* its only item is the document, so that this one too can be replaced */
};

static mur_node
argument (const struct call *call, const char *name)
{
    return mur_json_get (call->input, 0, name);
}

static struct value *
document (const struct call *call)
{
    return call->root->first;
}

/* --- The file --- */

/* A document may be a lone scalar; in brackets it is read like any other. */
static struct value *
read_document (const char *text, size_t len)
{
    struct mur_text whole = { 0 };
    mur_text_puts (&whole, "[");
    mur_text_add (&whole, text, len);
    mur_text_puts (&whole, "]");
    struct mur_json *json = mur_json_parse (whole.data, whole.len);
    mur_text_free (&whole); /* the parsed document has its own copy, which stays */
    return value_new (json, 0);
}

static void
tell_place (struct call *call, size_t wrong_at)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < wrong_at; i++) {
        column = call->text[i] == '\n' ? 1 : column + 1;
        line += call->text[i] == '\n';
    }
    mur_failed (call->out, "%s is no JSON that is read here: line %zu, column %zu", call->path,
                line, column);
}

static bool
load (struct call *call, bool may_be_new)
{
    char *error = NULL;
    struct stat facts;
    size_t wrong_at;
    if (may_be_new && stat (call->path, &facts) < 0) {
        call->root = read_document ("{}", 2);
        return true;
    }
    call->text = mur_file_read (call->path, FILE_LIMIT_BYTES, &call->len, &error);
    if (call->text == NULL)
        mur_failed (call->out, "%s", error);
    else if (! mur_json_check (call->text, call->len, &wrong_at))
        tell_place (call, wrong_at);
    else
        call->root = read_document (call->text, call->len);
    free (error);
    return call->root != NULL;
}

/* The white space that the file's first indented line begins with. */
static char *
indent_of (const struct call *call)
{
    const char *newline = call->text != NULL ? strchr (call->text, '\n') : NULL;
    if (call->text == NULL)
        return mur_format ("  ");
    while (newline != NULL && newline[1 + strspn (newline + 1, " \t")] == '\n')
        newline = strchr (newline + 1, '\n');
    size_t len = newline != NULL ? strspn (newline + 1, " \t") : 0;
    return len > 0 ? mur_format ("%.*s", (int)len, newline + 1) : NULL;
}

static bool
save (struct call *call)
{
    char *error = NULL;
    struct mur_text text = { 0 };
    struct layout layout = { .indent = indent_of (call) };
    layout.is_spaced = layout.indent != NULL || strstr (call->text, "\": ") != NULL;
    value_write (document (call), &layout, &text);
    if (call->text == NULL || (call->len > 0 && call->text[call->len - 1] == '\n'))
        mur_text_puts (&text, "\n");
    bool is_saved = mur_file_write (call->path, text.data, text.len, true, &error);
    if (! is_saved)
        mur_failed (call->out, "%s", error);
    mur_metadata (call->out, "state_effect", "mutate");
    mur_metadata (call->out, "resource_id", call->path);
    mur_text_free (&text);
    free (error);
    return is_saved;
}

/* --- query --- */

struct query {
    struct layout layout;
    struct mur_text text;
    size_t count;
    bool is_single;
    bool is_cut;
};

static bool
show_value (void *context, struct value *value)
{
    struct query *query = context;
    size_t before = query->text.len;
    query->count++;
    if (! query->is_single) {
        value_pointer (value, &query->text);
        mur_text_puts (&query->text, " ");
    }
    value_write (value, &query->layout, &query->text);
    mur_text_puts (&query->text, "\n");
    query->is_cut = query->text.len > ANSWER_LIMIT_BYTES;
    if (query->is_cut && before > 0)
        query->text.data[query->text.len = before] = '\0';
    return ! query->is_cut;
}

static void
run_query (struct call *call, const char *text)
{
    char *error = NULL;
    struct path *path = path_read (text, &error);
    if (path == NULL) {
        mur_failed (call->out, "query: %s", error);
        return;
    }
    struct query query = { .is_single = path_is_single (path) };
    query.layout = (struct layout){ .indent = query.is_single ? "  " : NULL,
                                    .is_spaced = query.is_single,
                                    .is_fresh = true };
    query.layout.depth_limit = (int)mur_json_int (call->input, argument (call, "depth"), 0);
    struct value *top = document (call);
    top->parent = NULL;
    path_walk (path, top, show_value, &query);
    if (query.count == 0) {
        mur_failed (call->out, "%s: nothing is at %s", call->path, text);
        return;
    }
    if (query.is_cut) {
        size_t len = mur_utf8_prefix (query.text.data, query.text.len, ANSWER_LIMIT_BYTES);
        query.text.data[query.text.len = len] = '\0';
        mur_text_printf (&query.text, "\n[cut at %u bytes: ask for less, or with depth]\n",
                         ANSWER_LIMIT_BYTES);
        call->out->truncated = true;
    }
    mur_passed_text (call->out, &query.text);
}

/* --- patch (RFC 6902) --- */

struct operation {
    struct call *call;
    mur_node node;
    char *path;
    char *from;
    struct value *value;
};

/* Puts a value where the pointer says; false when there is no such place. */
static bool
put (struct call *call, const char *pointer, struct value *value)
{
    const char *last = strrchr (pointer, '/');
    if (last == NULL) {
        value_replace (document (call), value);
        return *pointer == '\0';
    }
    char *above = mur_format ("%.*s", (int)(last - pointer), pointer);
    struct value *parent = value_find (document (call), above);
    free (above);
    if (parent == NULL)
        return false;
    if (parent->kind == MUR_JSON_OBJECT) {
        struct value *there = value_find (parent, last);
        if (there != NULL)
            value_replace (there, value);
        else
            value_set (parent, pointer_part (last + 1, strlen (last + 1)), value);
        return true;
    }
    char *end;
    size_t index = strcmp (last, "/-") == 0 ? parent->count : strtoul (last + 1, &end, 10);
    bool is_index = strcmp (last, "/-") == 0 || (last[1] >= '0' && last[1] <= '9' && *end == '\0' &&
                                                 (last[1] != '0' || last[2] == '\0'));
    if (parent->kind != MUR_JSON_ARRAY || ! is_index || index > parent->count)
        return false;
    value_insert (parent, index, value);
    return true;
}

static struct value *
target (const struct operation *o, const char *pointer)
{
    return value_find (document (o->call), pointer);
}

static const char *
do_add (struct operation *o)
{
    return put (o->call, o->path, o->value) ? NULL : "there is no such place";
}

static const char *
do_remove (struct operation *o)
{
    struct value *there = target (o, o->path);
    if (there == NULL)
        return "there is no such value";
    if (there == document (o->call))
        return "the whole document cannot be removed";
    value_remove (there);
    return NULL;
}

static const char *
do_replace (struct operation *o)
{
    struct value *there = target (o, o->path);
    if (there == NULL)
        return "there is no such value";
    value_replace (there, o->value);
    return NULL;
}

static const char *
do_move (struct operation *o)
{
    struct value *there = target (o, o->from);
    size_t len = strlen (o->from);
    if (there == NULL)
        return "from: there is no such value";
    if (strncmp (o->path, o->from, len) == 0 && o->path[len] == '/')
        return "a value cannot be moved into itself";
    if (strcmp (o->path, o->from) == 0)
        return NULL;
    value_remove (there);
    return put (o->call, o->path, there) ? NULL : "there is no such place";
}

static const char *
do_copy (struct operation *o)
{
    struct value *there = target (o, o->from);
    if (there == NULL)
        return "from: there is no such value";
    return put (o->call, o->path, value_copy (there)) ? NULL : "there is no such place";
}

static const char *
do_test (struct operation *o)
{
    struct value *there = target (o, o->path);
    if (there == NULL)
        return "there is no such value";
    return value_equals (there, o->value) ? NULL : "the value is another one";
}

static const struct operation_kind {
    const char *name;
    const char *(*run) (struct operation *);
    bool needs_value;
    bool needs_from;
} operation_kinds[] = {
    { "add", do_add, true, false },         { "remove", do_remove, false, false },
    { "replace", do_replace, true, false }, { "move", do_move, false, true },
    { "copy", do_copy, false, true },       { "test", do_test, true, false },
};

static bool
is_pointer (const char *text)
{
    return text != NULL && (*text == '\0' || *text == '/');
}

/* Returns what is wrong, or NULL. */
static const char *
run_operation (struct call *call, mur_node node)
{
    struct operation o = { .call = call, .node = node };
    const struct operation_kind *kind = NULL;
    mur_node value = mur_json_get (call->input, node, "value");
    for (size_t i = 0; i < sizeof operation_kinds / sizeof *operation_kinds; i++)
        if (mur_json_is (call->input, mur_json_get (call->input, node, "op"),
                         operation_kinds[i].name))
            kind = &operation_kinds[i];
    o.path = mur_json_text (call->input, mur_json_get (call->input, node, "path"));
    o.from = mur_json_text (call->input, mur_json_get (call->input, node, "from"));
    if (kind == NULL)
        return "op is needed: add, remove, replace, move, copy or test";
    if (! is_pointer (o.path))
        return "path is needed, a JSON Pointer such as /a/0";
    if (kind->needs_from && ! is_pointer (o.from))
        return "from is needed, a JSON Pointer such as /a/0";
    if (kind->needs_value && value < 0)
        return "value is needed";
    o.value = value >= 0 ? value_new (call->input, value) : NULL;
    if (o.value != NULL)
        value_loosen (o.value);
    return kind->run (&o);
}

static void
run_patch (struct call *call, mur_node patch)
{
    size_t number = 0;
    for (mur_node n = mur_json_first (call->input, patch); n >= 0;
         n = mur_json_next (call->input, n)) {
        const char *wrong = run_operation (call, n);
        if (wrong != NULL) {
            char *path = mur_json_text (call->input, mur_json_get (call->input, n, "path"));
            mur_failed (call->out, "operation %zu%s%s: %s; nothing was changed", number,
                        path != NULL ? " at " : "", path != NULL ? path : "", wrong);
            return;
        }
        number++;
    }
    if (save (call))
        mur_passed (call->out, "%s: %zu operations done", call->path, number);
}

/* --- merge (RFC 7396) --- */

static void
merge (struct value *into, const struct value *patch)
{
    for (const struct value *c = patch->first; c != NULL; c = c->next) {
        struct value *there = value_member (into, c->key);
        if (c->kind == MUR_JSON_NULL) {
            if (there != NULL)
                value_remove (there);
            continue;
        }
        if (c->kind != MUR_JSON_OBJECT) {
            value_set (into, c->key, value_copy (c));
            continue;
        }
        if (there == NULL || there->kind != MUR_JSON_OBJECT) {
            there = read_document ("{}", 2)->first;
            value_set (into, c->key, there);
        }
        merge (there, c);
    }
}

static void
run_merge (struct call *call, mur_node patch)
{
    if (document (call)->kind != MUR_JSON_OBJECT) {
        mur_failed (call->out, "%s holds no object to merge into", call->path);
        return;
    }
    struct value *changes = value_new (call->input, patch);
    value_loosen (changes);
    merge (document (call), changes);
    if (save (call))
        mur_passed (call->out, "%s: merged", call->path);
}

/* --- A call --- */

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct call call = { .input = in->json, .out = out };
    mur_node patch = argument (&call, "patch"), changes = argument (&call, "merge");
    char *query = mur_json_text (in->json, argument (&call, "query"));
    call.path = mur_json_text (in->json, argument (&call, "path"));
    if (call.path == NULL || *call.path == '\0')
        mur_failed (out, "path is needed, a file of the work folder");
    else if ((patch >= 0) + (changes >= 0) + (query != NULL) > 1)
        mur_failed (out, "give one of query, patch and merge");
    else if (patch >= 0 && mur_json_kind (in->json, patch) != MUR_JSON_ARRAY)
        mur_failed (out, "patch is a list of operations");
    else if (changes >= 0 && mur_json_kind (in->json, changes) != MUR_JSON_OBJECT)
        mur_failed (out, "merge is an object");
    else if (! load (&call, patch >= 0 || changes >= 0))
        return;
    else if (patch >= 0)
        run_patch (&call, patch);
    else if (changes >= 0)
        run_merge (&call, changes);
    else
        run_query (&call, query != NULL ? query : "");
    if (out->metadata_count == 0)
        mur_metadata (out, "state_effect", "read");
}
