/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/recipe_text.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/words.h"
#include "fs/root.h"

#include <fcntl.h>
#include <string.h>

#define FILE_BYTES    (64 * 1024)
#define RECIPES_SHOWN 64 /* a file may name itself in a circle, or hundreds of others */

static const char blanks[] = " \t";

struct search {
    struct fs_root *root;
    struct strv names; /* what is asked for; grows by what that depends on */
    struct strv seen;
    struct buf out;
};

/* How one program finds its file and a recipe in it. */
struct runner {
    const char *programs[4];
    const char *files[4];
    const char *file_options[4];   /* the next word is the file */
    const char *folder_options[4]; /* the next word is the folder */
    const char *other_options[8];  /* the next word is no name */
    bool wants_run;                /* the first name is a word like `run` */
    void (*show) (struct search *s, const char *text, size_t len, const char *name);
    char *(*first) (const char *text); /* what runs without a name; NULL: nothing. Owned */
};

static bool
is_among (const char *const *list, size_t len, const char *word)
{
    for (size_t i = 0; i < len && list[i]; i++)
        if (str_eq (list[i], word))
            return true;
    return false;
}

static void
show_line (struct search *s, const char *text, size_t len)
{
    if (s->out.len)
        buf_putc (&s->out, '\n');
    buf_append (&s->out, text, len);
}

/* True once for each name. */
static bool
is_new (struct search *s, const char *name)
{
    if (s->seen.len >= RECIPES_SHOWN || strv_contains (&s->seen, name))
        return false;
    strv_push (&s->seen, name);
    return true;
}

/* --- make and just: a head at the margin, its lines indented below it --- */

/* One line, continued ones joined; *at goes behind it. */
static const char *
take_line (const char **at, size_t *len)
{
    const char *start = *at, *end = start;
    for (;; end++) {
        end += strcspn (end, "\n");
        if (! *end || end == start || end[-1] != '\\')
            break;
    }
    *len = (size_t)(end - start);
    *at = *end ? end + 1 : end;
    return start;
}

static bool
is_between_lines (const char *line, size_t len)
{
    size_t space = strspn (line, " \t\r");
    return space >= len || line[space] == '#';
}

/* The colon that ends the names of a head: no assignment, no colon in a quote's or word's middle.
 */
static const char *
colon_of (const char *line, size_t len)
{
    const char *colon = memchr (line, ':', len), *equals = memchr (line, '=', len);
    bool is_head = colon && line[0] != '\t' && line[0] != ' ' && line[0] != '#' &&
                   (! equals || colon < equals);
    const char *after = is_head ? colon + strspn (colon, ":") : NULL;
    return is_head && (after >= line + len || *after != '=') ? colon : NULL;
}

static void
push_words (struct strv *words, const char *text, size_t len)
{
    _cleanup_free_ char *copy = x_strndup (text, len);
    char *rest = copy, *word;
    while ((word = strsep (&rest, " \t\r\\\n()|&\"'")))
        if (*word)
            strv_push (words, word);
}

static void
show_indented (struct search *s, const char **at)
{
    for (;;) {
        size_t len;
        const char *before = *at, *line = take_line (at, &len);
        if (! *before)
            return;
        if (line[0] != '\t' && line[0] != ' ' && ! is_between_lines (line, len)) {
            *at = before;
            return;
        }
        size_t space = strspn (line, blanks);
        if (space && space < len && line[space] != '\r')
            show_line (s, line + space, len - space);
    }
}

/* Runs what the head at <line> is made of: first what it depends on, then its own lines. */
static void
show_below_head (struct search *s, const char *text, const char *line, size_t len, size_t names,
                 void (*show) (struct search *, const char *, size_t, const char *))
{
    const char *needs = line + names, *own = memchr (needs, ';', len - names);
    size_t needs_len = own ? (size_t)(own - needs) : len - names;
    _cleanup_strv_ struct strv words = { 0 };
    push_words (&words, needs, needs_len);
    for (size_t i = 0; i < words.len; i++)
        show (s, text, 0, words.items[i]);
    if (own)
        show_line (s, own + 1 + strspn (own + 1, blanks),
                   len - (size_t)(own + 1 - line) - strspn (own + 1, blanks));
    const char *after = line + len + (line[len] == '\n');
    show_indented (s, &after);
}

static void
show_make (struct search *s, const char *text, size_t len, const char *name)
{
    (void)len;
    if (! is_new (s, name))
        return;
    for (const char *at = text; *at;) {
        size_t line_len;
        const char *line = take_line (&at, &line_len), *colon = colon_of (line, line_len);
        if (! colon)
            continue;
        _cleanup_strv_ struct strv heads = { 0 };
        push_words (&heads, line, (size_t)(colon - line));
        if (heads.len && heads.items[heads.len - 1][0] && strv_contains (&heads, name)) {
            const char *tail = colon + strspn (colon, ":");
            show_below_head (s, text, line, line_len, (size_t)(tail - line), show_make);
        }
    }
}

/* A recipe of just: `@name parameter="x" *rest: first (second "a") && third`. */
static void
show_just (struct search *s, const char *text, size_t len, const char *name)
{
    (void)len;
    if (! is_new (s, name))
        return;
    for (const char *at = text; *at;) {
        size_t line_len;
        const char *line = take_line (&at, &line_len);
        const char *head = line + (line[0] == '@');
        size_t name_len = strcspn (head, " \t:\n");
        const char *colon = memchr (line, ':', line_len);
        bool is_this = name_len == strlen (name) && strncmp (head, name, name_len) == 0;
        if (! colon || line[0] == '\t' || line[0] == ' ' || line[0] == '#')
            continue;
        if (colon + 1 < line + line_len && colon[1] == '=') { /* alias b := build */
            _cleanup_strv_ struct strv words = { 0 };
            push_words (&words, line, line_len);
            if (words.len >= 4 && str_eq (words.items[0], "alias") && str_eq (words.items[1], name))
                show_just (s, text, 0, words.items[words.len - 1]);
        } else if (is_this) {
            const char *last = memrchr (line, ':', line_len);
            show_below_head (s, text, line, line_len, (size_t)(last + 1 - line), show_just);
        }
    }
}

static char *
first_head (const char *text)
{
    for (const char *at = text; *at;) {
        size_t len;
        const char *line = take_line (&at, &len), *colon = colon_of (line, len);
        if (! colon || line[0] == '.' || memchr (line, '%', (size_t)(colon - line)))
            continue;
        const char *head = line + (line[0] == '@');
        return x_strndup (head, strcspn (head, " \t:"));
    }
    return NULL;
}

/* Neither a setting nor a line of a recipe. */
static char *
first_just (const char *text)
{
    for (const char *at = text; *at;) {
        size_t len;
        const char *line = take_line (&at, &len), *colon = memchr (line, ':', len);
        if (colon && ! strchr ("\t #[", line[0]) && colon[1] != '=')
            return x_strndup (line + (line[0] == '@'), strcspn (line + (line[0] == '@'), " \t:"));
    }
    return NULL;
}

/* --- npm and its like: scripts of package.json --- */

static void
show_script (struct search *s, const char *text, size_t len, const char *name)
{
    static const char *const parts[] = { "pre", "", "post" };
    struct mur_error *err = NULL;
    _cleanup_json_ json_t *package = json_parse (text, len, "package.json", E_IO_003, &err);
    mur_error_free (err);
    const json_t *scripts = json_object_get (package, "scripts");
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        _cleanup_free_ char *key = x_asprintf ("%s%s", parts[i], name);
        const char *script = json_is_object (scripts) ? json_get_string (scripts, key) : NULL;
        if (script && (i == 1 || json_get_string (scripts, name)))
            show_line (s, script, strlen (script));
    }
}

/* --- which program, which file, which names --- */

static const struct runner runners[] = {
    { .programs = { "make", "gmake" },
      .files = { "GNUmakefile", "makefile", "Makefile" },
      .file_options = { "-f", "--file", "--makefile" },
      .folder_options = { "-C", "--directory" },
      .other_options = { "-I", "-o", "-W", "--include-dir", "--old-file", "--what-if", "-l" },
      .show = show_make,
      .first = first_head },
    { .programs = { "just" },
      .files = { "justfile", ".justfile", "Justfile" },
      .file_options = { "-f", "--justfile" },
      .folder_options = { "-d", "--working-directory" },
      .other_options = { "--shell", "--color", "--dotenv-path" },
      .show = show_just,
      .first = first_just },
    { .programs = { "npm", "pnpm", "yarn", "bun" },
      .files = { "package.json" },
      .folder_options = { "--prefix", "-C", "--cwd", "--dir" },
      .other_options = { "-w", "--workspace", "--loglevel" },
      .wants_run = true,
      .show = show_script },
};

static const struct runner *
runner_of (const char *program)
{
    const char *slash = strrchr (program, '/');
    for (size_t i = 0; i < ARRAY_LEN (runners); i++)
        if (is_among (runners[i].programs, ARRAY_LEN (runners[i].programs),
                      slash ? slash + 1 : program))
            return &runners[i];
    return NULL;
}

/* The value of the option at argv[*i], joined or in the next word; NULL: it is none of these. */
static const char *
option_value (const char *const *options, size_t len, const struct strv *argv, size_t *i)
{
    const char *word = argv->items[*i];
    for (size_t k = 0; k < len && options[k]; k++) {
        size_t name = strlen (options[k]);
        bool is_long = options[k][1] == '-';
        if (strncmp (word, options[k], name) != 0)
            continue;
        if (! word[name])
            return *i + 1 < argv->len ? argv->items[++*i] : "";
        if (is_long && word[name] == '=')
            return word + name + 1;
        if (! is_long)
            return word + name;
    }
    return NULL;
}

static void
read_argv (struct search *s, const struct runner *r, const struct strv *argv, const char **file,
           const char **folder)
{
    for (size_t i = 1; i < argv->len; i++) {
        const char *word = argv->items[i], *value;
        if (str_eq (word, "--"))
            break;
        if ((value = option_value (r->file_options, ARRAY_LEN (r->file_options), argv, &i)))
            *file = value;
        else if ((value =
                      option_value (r->folder_options, ARRAY_LEN (r->folder_options), argv, &i)))
            *folder = value;
        else if (word[0] != '-' && ! strchr (word, '='))
            strv_push (&s->names, word);
        else
            option_value (r->other_options, ARRAY_LEN (r->other_options), argv, &i);
    }
}

/* `npm run x` and `npm x` name x; what follows is the script's own. */
static void
keep_script_name (struct strv *names)
{
    static const char *const words[] = { "run", "run-script", "rum", "urn" };
    size_t at = names->len > 1 && is_among (words, ARRAY_LEN (words), names->items[0]) ? 1 : 0;
    char *name = names->len ? x_strdup (names->items[at]) : NULL;
    strv_free (names);
    *names = (struct strv){ 0 };
    if (name)
        strv_take (names, name);
}

static bool
read_file (struct search *s, const struct runner *r, const char *folder, const char *file,
           struct buf *text)
{
    const char *const asked[] = { file, NULL };
    const char *const *files = file ? asked : r->files;
    for (size_t i = 0; i < ARRAY_LEN (r->files) && files[i]; i++) {
        const char *name = files[i];
        while (str_starts (name, "./"))
            name += 2;
        _cleanup_free_ char *path = folder ? x_asprintf ("%s/%s", folder, name) : x_strdup (name);
        struct mur_error *err = NULL;
        if (fs_read (s->root, path, FILE_BYTES, text, &err) &&
            ! memchr (text->data ? text->data : "", 0, text->len))
            return true;
        mur_error_free (err);
        buf_truncate (text, 0);
    }
    return false;
}

static void
look_at (struct search *s, const struct strv *argv)
{
    const struct runner *r = argv->len ? runner_of (argv->items[0]) : NULL;
    const char *file = NULL, *folder = NULL;
    _cleanup_buf_ struct buf text = { 0 };
    if (! r)
        return;
    read_argv (s, r, argv, &file, &folder);
    if (r->wants_run)
        keep_script_name (&s->names);
    while (folder && str_starts (folder, "./"))
        folder += 2;
    if (folder && (! *folder || str_eq (folder, ".")))
        folder = NULL;
    if (read_file (s, r, folder, file, &text) && text.len) {
        char *first = ! s->names.len && r->first ? r->first (text.data) : NULL;
        if (first)
            strv_take (&s->names, first);
        for (size_t i = 0; i < s->names.len; i++)
            r->show (s, text.data, text.len, s->names.items[i]);
    }
    strv_free (&s->names);
    strv_free (&s->seen);
    s->names = s->seen = (struct strv){ 0 };
}

/* Each simple command of a script, as far as it can be told without running it. */
static void
look_at_script (struct search *s, const char *script)
{
    static const char *const before[] = { "exec", "command", "time", "env", "nohup", "then", "do" };
    _cleanup_free_ char *copy = x_strdup (script);
    char *rest = copy, *command;
    while ((command = strsep (&rest, "\n;&|(){}"))) {
        _cleanup_strv_ struct strv words = { 0 };
        if (! words_split (command, &words))
            continue;
        size_t at = 0;
        while (at < words.len && (strchr (words.items[at], '=') ||
                                  is_among (before, ARRAY_LEN (before), words.items[at])))
            at++;
        const struct strv own = { .items = words.items + at, .len = words.len - at };
        look_at (s, &own);
    }
}

char *
recipe_text (int work_fd, const char *work_path, const struct strv *argv, const char *script)
{
    int fd = fcntl (work_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    /* Its own root: what is refused here is no refusal of the capsule's. */
    struct search s = { .root = fs_root_new (fd, work_path, NULL, false) };
    if (script)
        look_at_script (&s, script);
    else
        look_at (&s, argv);
    fs_root_free (s.root);
    char *text = s.out.len ? buf_steal (&s.out) : NULL;
    buf_free (&s.out);
    return text;
}
