/* SPDX-License-Identifier: Apache-2.0
 *
 * std/files: reads, writes, lists, edits and searches text files below the folder this tool was
 * given.
 *
 * The sandbox confines every path; the checks here only turn its refusals into sentences a model
 * can act on. Always true: no answer is longer than its bound, and one that was cut says so.
 */
#include <dirent.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <wctype.h>

#include "murmur_sdk.h"

#define FILE_LIMIT_BYTES        (16u << 20)
#define READ_LIMIT_BYTES        (64u << 10)
#define LIST_LIMIT_ENTRIES      500
#define SEARCH_FILE_LIMIT_BYTES (4u << 20)
#define SEARCH_LIMIT_LINES      200
#define SEARCH_LINE_LIMIT_BYTES 300
#define DEPTH_LIMIT             32

/* One call and the answer it grows. */
struct call {
    const struct mur_json *input;
    struct mur_result *out;
    struct mur_text text;
    char *path; /* never NULL */
};

static mur_node
argument (const struct call *call, const char *name)
{
    return mur_json_get (call->input, 0, name);
}

static bool
is_on (const struct call *call, const char *name)
{
    return mur_json_bool (call->input, argument (call, name), false);
}

static void
changed (struct call *call)
{
    mur_metadata (call->out, "state_effect", "mutate");
    mur_metadata (call->out, "resource_id", call->path);
}

/* A file as text; NULL once the refusal is told. */
static char *
read_text (struct call *call, size_t *len)
{
    char *error = NULL;
    char *text = mur_file_read (call->path, FILE_LIMIT_BYTES, len, &error);
    if (text == NULL)
        mur_failed (call->out, "%s", error);
    else if (! mur_utf8_valid (text, *len) || memchr (text, '\0', *len) != NULL)
        mur_failed (call->out, "%s is no text file", call->path), free (text), text = NULL;
    free (error);
    return text;
}

/* --- read --- */

static void
read_lines (struct call *call)
{
    size_t len;
    char *text = read_text (call, &len);
    if (text == NULL)
        return;
    int64_t first = mur_json_int (call->input, argument (call, "first_line"), 1);
    int64_t count = mur_json_int (call->input, argument (call, "line_count"), INT64_MAX);
    int64_t line = 1;
    const char *from = text, *end = text + len;
    for (; line < first && from < end; line++) {
        const char *newline = memchr (from, '\n', (size_t)(end - from));
        from = newline != NULL ? newline + 1 : end;
    }
    if (line < first)
        mur_text_printf (&call->text, "[%s has %lld lines]\n", call->path, (long long)line - 1);
    for (; count > 0 && from < end; count--, line++) {
        const char *newline = memchr (from, '\n', (size_t)(end - from));
        size_t line_len = (size_t)((newline != NULL ? newline + 1 : end) - from);
        if (call->text.len + line_len > READ_LIMIT_BYTES) {
            size_t room = READ_LIMIT_BYTES - call->text.len;
            if (call->text.len == 0)
                mur_text_add (&call->text, from, mur_utf8_prefix (from, line_len, room));
            call->out->truncated = true;
            mur_text_printf (
                &call->text, "\n[cut at %u bytes: go on with first_line %lld]\n", READ_LIMIT_BYTES,
                (long long)(call->text.len > 0 && room == READ_LIMIT_BYTES ? line + 1 : line));
            break;
        }
        mur_text_add (&call->text, from, line_len);
        from += line_len;
    }
    free (text);
    mur_passed_text (call->out, &call->text);
}

/* --- write --- */

static void
write_text (struct call *call)
{
    char *content = mur_json_text (call->input, argument (call, "content"));
    struct mur_text whole = { 0 };
    char *error = NULL;
    struct stat facts;
    if (content == NULL) {
        mur_failed (call->out, "write: content is needed, a string");
        return;
    }
    bool is_append = is_on (call, "append");
    bool is_there = stat (call->path, &facts) == 0;
    if (is_append && is_there) {
        size_t len;
        char *text = read_text (call, &len);
        if (text == NULL)
            return;
        mur_text_add (&whole, text, len);
        free (text);
    }
    mur_text_puts (&whole, content);
    if (mur_file_write (call->path, whole.data, whole.len, true, &error)) {
        const char *verb = is_append && is_there ? "added to" : is_there ? "replaced" : "created";
        mur_passed (call->out, "%s %s: %zu bytes", verb, call->path, whole.len);
        changed (call);
    } else {
        mur_failed (call->out, "%s", error);
    }
    mur_text_free (&whole);
    free (content);
    free (error);
}

/* --- edit --- */

static size_t
count_of (const char *text, const char *old)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr (at, old)) != NULL; at += strlen (old))
        count++;
    return count;
}

static void
replace (struct call *call, const char *text, const char *old, const char *new, size_t count)
{
    struct mur_text whole = { 0 };
    char *error = NULL;
    const char *from = text;
    for (const char *at; (at = strstr (from, old)) != NULL; from = at + strlen (old)) {
        mur_text_add (&whole, from, (size_t)(at - from));
        mur_text_puts (&whole, new);
    }
    mur_text_puts (&whole, from);
    if (mur_file_write (call->path, whole.data, whole.len, false, &error)) {
        mur_passed (call->out, "%s: %zu replaced", call->path, count);
        changed (call);
    } else {
        mur_failed (call->out, "%s", error);
    }
    mur_text_free (&whole);
    free (error);
}

static void
edit_text (struct call *call)
{
    char *old = mur_json_text (call->input, argument (call, "old"));
    char *new = mur_json_text (call->input, argument (call, "new"));
    size_t len;
    if (old == NULL || new == NULL || *old == '\0') {
        mur_failed (call->out, "edit: old and new are needed, strings; old is not empty");
        return;
    }
    char *text = read_text (call, &len);
    size_t count = text != NULL ? count_of (text, old) : 0;
    if (text != NULL && count == 0)
        mur_failed (call->out, "%s does not hold the old text; nothing was changed", call->path);
    else if (text != NULL && count > 1 && ! is_on (call, "all"))
        mur_failed (call->out,
                    "%s holds the old text %zu times: give more of it, or all; nothing was changed",
                    call->path, count);
    else if (text != NULL)
        replace (call, text, old, new, count);
    free (text);
    free (old);
    free (new);
}

/* --- Folders --- */

static int
by_name (const void *a, const void *b)
{
    return strcmp (*(char *const *)a, *(char *const *)b);
}

/* Names of a folder, sorted; NULL with errno set. */
static char **
names_of (const char *path, size_t *count)
{
    DIR *folder = opendir (path);
    if (folder == NULL)
        return NULL;
    char **names = calloc (1, sizeof *names);
    *count = 0;
    for (struct dirent *entry; (entry = readdir (folder)) != NULL;) {
        if (strcmp (entry->d_name, ".") == 0 || strcmp (entry->d_name, "..") == 0)
            continue;
        names = realloc (names, (*count + 2) * sizeof *names);
        if (names == NULL)
            abort ();
        names[(*count)++] = mur_format ("%s", entry->d_name);
    }
    closedir (folder);
    qsort (names, *count, sizeof *names, by_name);
    return names;
}

static char *
joined (const char *folder, const char *name)
{
    return strcmp (folder, ".") == 0 ? mur_format ("%s", name) : mur_format ("%s/%s", folder, name);
}

/* Visits what is below a folder in order; `visit` answers false to stop. */
struct walk {
    bool is_recursive;
    bool (*visit) (struct walk *, const char *path, const struct stat *facts);
    struct call *call;
    size_t count;
    regex_t *pattern;
    const char *needle;
    size_t passed_over;
};

static bool
walk_folder (struct walk *walk, const char *folder, int depth)
{
    size_t count;
    char **names = names_of (folder, &count);
    bool goes_on = true;
    if (names == NULL)
        return true;
    for (size_t i = 0; i < count; i++) {
        char *path = joined (folder, names[i]);
        struct stat facts;
        bool is_there = goes_on && lstat (path, &facts) == 0;
        if (is_there)
            goes_on = walk->visit (walk, path, &facts);
        if (is_there && goes_on && walk->is_recursive && S_ISDIR (facts.st_mode) &&
            depth < DEPTH_LIMIT && strcmp (names[i], ".git") != 0)
            goes_on = walk_folder (walk, path, depth + 1);
        free (path);
        free (names[i]);
    }
    free (names);
    return goes_on;
}

static bool
list_entry (struct walk *walk, const char *path, const struct stat *facts)
{
    if (walk->count == LIST_LIMIT_ENTRIES) {
        mur_text_printf (&walk->call->text, "[cut at %d entries]\n", LIST_LIMIT_ENTRIES);
        walk->call->out->truncated = true;
        return false;
    }
    walk->count++;
    if (S_ISDIR (facts->st_mode))
        mur_text_printf (&walk->call->text, "%s/\n", path);
    else
        mur_text_printf (&walk->call->text, "%s  %lld\n", path, (long long)facts->st_size);
    return true;
}

static bool
is_folder (struct call *call, const char *what)
{
    struct stat facts;
    if (stat (call->path, &facts) < 0)
        mur_failed (call->out, "%s", mur_path_error (call->path));
    else if (! S_ISDIR (facts.st_mode))
        mur_failed (call->out, "%s is no folder; %s", call->path, what);
    else
        return true;
    return false;
}

static void
list_folder (struct call *call)
{
    struct walk walk = { .is_recursive = is_on (call, "recursive"),
                         .visit = list_entry,
                         .call = call };
    if (! is_folder (call, "read it instead"))
        return;
    walk_folder (&walk, call->path, 0);
    if (walk.count == 0)
        mur_text_printf (&call->text, "%s is empty\n",
                         strcmp (call->path, ".") == 0 ? "the work folder" : call->path);
    mur_passed_text (call->out, &call->text);
}

/* --- search --- */

/* The character classes of a pattern, and the case that does not matter, are those of ASCII: libc's
 * Unicode tables would be a tenth of this component. */
int
iswalpha (wint_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int
iswpunct (wint_t c)
{
    return c > ' ' && c < 0x7f && ! iswalpha (c) && ! (c >= '0' && c <= '9');
}

wint_t
towlower (wint_t c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

wint_t
towupper (wint_t c)
{
    return c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c;
}

static bool
line_matches (const struct walk *walk, const char *line)
{
    return walk->pattern != NULL ? regexec (walk->pattern, line, 0, NULL, 0) == 0
                                 : strstr (line, walk->needle) != NULL;
}

static bool
search_text (struct walk *walk, const char *path, char *text)
{
    size_t number = 0;
    for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
        next = strchr (line, '\n');
        if (next != NULL)
            *next++ = '\0';
        number++;
        if (! line_matches (walk, line))
            continue;
        if (walk->count == SEARCH_LIMIT_LINES) {
            mur_text_printf (&walk->call->text, "[cut at %d lines]\n", SEARCH_LIMIT_LINES);
            walk->call->out->truncated = true;
            return false;
        }
        walk->count++;
        size_t len = strlen (line);
        size_t shown = mur_utf8_prefix (line, len, SEARCH_LINE_LIMIT_BYTES);
        mur_text_printf (&walk->call->text, "%s:%zu: %.*s%s\n", path, number, (int)shown, line,
                         shown < len ? " [...]" : "");
    }
    return true;
}

static bool
search_file (struct walk *walk, const char *path, const struct stat *facts)
{
    size_t len;
    if (! S_ISREG (facts->st_mode))
        return true;
    char *text = mur_file_read (path, SEARCH_FILE_LIMIT_BYTES, &len, NULL);
    bool is_text = text != NULL && memchr (text, '\0', len) == NULL && mur_utf8_valid (text, len);
    bool goes_on = is_text ? search_text (walk, path, text) : true;
    walk->passed_over += ! is_text;
    free (text);
    return goes_on;
}

static void
search (struct call *call)
{
    char *needle = mur_json_text (call->input, argument (call, "text"));
    regex_t pattern;
    struct stat facts;
    bool is_regex = is_on (call, "regex"), ignores_case = is_on (call, "ignore_case");
    if (needle == NULL || *needle == '\0') {
        mur_failed (call->out, "search: text is needed, a string");
        return;
    }
    if (stat (call->path, &facts) < 0) {
        mur_failed (call->out, "%s", mur_path_error (call->path));
        return;
    }
    /* A plain text whose case does not matter is searched as a pattern with every special character
     * escaped. */
    struct mur_text source = { 0 };
    for (const char *c = needle; *c != '\0'; c++)
        mur_text_printf (&source,
                         ! is_regex && strchr ("\\^$.[]|()*+?{}", *c) != NULL ? "\\%c" : "%c", *c);
    bool is_compiled = is_regex || ignores_case;
    if (is_compiled) {
        int failure = regcomp (&pattern, source.data,
                               REG_EXTENDED | REG_NOSUB | (ignores_case ? REG_ICASE : 0));
        if (failure != 0) {
            char reason[128];
            regerror (failure, &pattern, reason, sizeof reason);
            mur_failed (call->out, "search: text is no regular expression: %s", reason);
            return;
        }
    }
    struct walk walk = { .is_recursive = true,
                         .visit = search_file,
                         .call = call,
                         .pattern = is_compiled ? &pattern : NULL,
                         .needle = needle };
    if (S_ISDIR (facts.st_mode))
        walk_folder (&walk, call->path, 0);
    else
        search_file (&walk, call->path, &facts);
    if (walk.count == 0)
        mur_text_puts (&call->text, "no line holds it\n");
    if (walk.passed_over > 0)
        mur_text_printf (&call->text, "[%zu files passed over: binary, too large or unreadable]\n",
                         walk.passed_over);
    mur_passed_text (call->out, &call->text);
}

/* --- A call --- */

static const struct action {
    const char *name;
    void (*run) (struct call *);
    bool needs_path;
    bool changes;
} actions[] = {
    { "read", read_lines, true, false },   { "write", write_text, true, true },
    { "list", list_folder, false, false }, { "edit", edit_text, true, true },
    { "search", search, false, false },
};

/* Paths as people write them: no leading ./, no trailing /, and a clear word about what cannot be
 * reached. */
static bool
take_path (struct call *call, const struct action *action)
{
    char *path = mur_json_text (call->input, argument (call, "path"));
    if ((path == NULL || *path == '\0') && action->needs_path) {
        mur_failed (call->out, "%s: path is needed", action->name);
        return false;
    }
    if (path == NULL || *path == '\0')
        path = mur_format (".");
    if (*path == '/') {
        mur_failed (call->out, "%s: give a path relative to the work folder", path);
        return false;
    }
    while (strncmp (path, "./", 2) == 0)
        path += 2 + strspn (path + 2, "/");
    for (size_t len = strlen (path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    call->path = *path != '\0' ? path : mur_format (".");
    return true;
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct call call = { .input = in->json, .out = out };
    struct mur_json *config = mur_config ();
    bool is_read_only = mur_json_bool (config, mur_json_get (config, 0, "read_only"), false);
    mur_node name = argument (&call, "action");
    const struct action *action = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (mur_json_is (in->json, name, actions[i].name))
            action = &actions[i];
    if (action == NULL) {
        mur_failed (out, "action is needed: read, write, list, edit or search");
    } else if (action->changes && is_read_only) {
        mur_failed (out, "%s: this tool may only read (config.read_only)", action->name);
    } else if (take_path (&call, action)) {
        action->run (&call);
        if (! action->changes)
            mur_metadata (out, "state_effect", "read");
    }
    mur_json_free (config);
}
