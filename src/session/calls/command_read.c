/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/command_read.h"

#include "base/alloc.h"
#include "base/words.h"
#include "session/state/command_line.h"

#include <ctype.h>
#include <string.h>

#define MOST_NESTED 8

/* --- what programs do --- */

/* Start nothing and change no file. */
static const char *const readers[] = {
    "[",     "basename", "break",     "cat",       "cd",       "cksum",    "cmp",     "column",
    "comm",  "continue", "cut",       "date",      "df",       "diff",     "dirname", "du",
    "echo",  "exit",     "expr",      "false",     "fold",     "grep",     "head",    "hexdump",
    "id",    "join",     "jq",        "ls",        "md5sum",   "nl",       "nproc",   "od",
    "paste", "printenv", "printf",    "pwd",       "readlink", "realpath", "return",  "rev",
    "seq",   "sha1sum",  "sha256sum", "sha512sum", "shift",    "sleep",    "stat",    "strings",
    "tac",   "tail",     "test",      "tr",        "true",     "uname",    "unset",   "wait",
    "wc",    "which",    "whoami",    ":"
};

/* Start nothing; change the files their words name. */
static const char *const writers[] = { "chgrp",    "chmod", "chown",  "cp",     "dd",  "install",
                                       "ln",       "mkdir", "mkfifo", "mktemp", "mv",  "rm",
                                       "rmdir",    "shred", "sort",   "split",  "tee", "touch",
                                       "truncate", "uniq",  "unlink", "csplit" };

/* Words of the shell before a command, and commands that run what follows them as it stands. */
static const char *const prefixes[] = {
    "if", "then", "else", "elif", "while", "until",   "do",
    "!",  "{",    "time", "exec", "nohup", "command", "builtin"
};
/* Words of the shell that begin or end something and start nothing. */
static const char *const marks[] = { "fi", "done",  "esac",   "}",        "for",    "case",
                                     "in", "local", "export", "readonly", "declare" };

/* Variables by which a shell finds and starts programs. */
static const char *const steering[] = { "PATH",           "IFS",    "ENV",
                                        "BASH_ENV",       "SHELL",  "PS4",
                                        "PROMPT_COMMAND", "CDPATH", "FPATH" };

static bool
is_among (const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq (words[i], word))
            return true;
    return false;
}

#define IS_AMONG(word, list) is_among (word, list, ARRAY_LEN (list))

/* A word that sets a variable. */
static bool
is_assignment (const char *word)
{
    size_t len = strspn (word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len && ! isdigit ((unsigned char)word[0]) &&
           (word[len] == '=' || (word[len] == '+' && word[len + 1] == '='));
}

static bool
steers (const char *assignment)
{
    size_t len = strcspn (assignment, "+=");
    _cleanup_free_ char *name = x_strndup (assignment, len);
    return IS_AMONG (name, steering) || str_starts (name, "LD_") || str_starts (name, "GCONV_") ||
           str_starts (name, "OPENSSL_");
}

static void
set_opaque (struct command_reading *r, const char *by)
{
    if (! r->is_opaque)
        r->opaque_by = by;
    r->is_opaque = true;
}

static bool
find_starts_others (const struct simple_command *c)
{
    for (size_t i = 1; i < c->words.len; i++)
        if (str_starts (c->words.items[i], "-exec") || str_starts (c->words.items[i], "-ok"))
            return true;
    return false;
}

static bool
find_writes (const struct simple_command *c)
{
    for (size_t i = 1; i < c->words.len; i++)
        if (str_starts (c->words.items[i], "-delete") || str_starts (c->words.items[i], "-f"))
            return true;
    return false;
}

static bool
has_word_beginning (const struct simple_command *c, const char *beginning)
{
    for (size_t i = 1; i < c->words.len; i++)
        if (str_starts (c->words.items[i], beginning))
            return true;
    return false;
}

/* Words with which a reader or a writer starts a program, or sets a variable (whose subscript bash
 * evaluates). */
static const struct {
    const char *name, *beginning;
} starting_words[] = {
    { "sort", "--co" }, { "split", "--f" }, { "install", "--s" },
    { "printf", "-v" }, { "test", "-v" },   { "test", "-R" },
    { "[", "-v" },      { "[", "-R" },      { "wait", "-p" },
};

static bool
unset_steers (const struct simple_command *c)
{
    for (size_t i = 1; i < c->words.len; i++)
        if (steers (c->words.items[i]) || strchr (c->words.items[i], '['))
            return true;
    return c->has_expansion;
}

/* A reader or a writer whose words make it start something. */
static bool
words_start_others (const struct simple_command *c)
{
    const char *name = c->words.items[0];
    if (str_eq (name, "unset"))
        return unset_steers (c);
    for (size_t i = 0; i < ARRAY_LEN (starting_words); i++) {
        bool is_external =
            str_eq (name, "sort") || str_eq (name, "split") || str_eq (name, "install");
        if (str_eq (name, starting_words[i].name) &&
            (has_word_beginning (c, starting_words[i].beginning) ||
             (is_external && c->has_expansion)))
            return true;
    }
    return false;
}

/* Fills what the program does with its words. */
static void
judge (struct simple_command *c)
{
    const char *name = c->words.items[0];
    if (str_eq (name, "find")) {
        c->starts_others = find_starts_others (c) || c->has_expansion;
        c->only_reads = ! c->starts_others && ! find_writes (c);
    } else {
        bool is_reader = IS_AMONG (name, readers);
        c->starts_others = (! is_reader && ! IS_AMONG (name, writers)) || words_start_others (c);
        c->only_reads = is_reader && ! c->starts_others;
        c->is_after_cd |= str_eq (name, "ln"); /* what a link says means the link's own folder */
    }
}

/* --- commands --- */

static void read_script (const char *script, struct command_reading *out, unsigned depth);

static struct simple_command *
add_command (struct command_reading *r)
{
    if (r->len == COMMANDS_READ_MAX) {
        set_opaque (r, "its length");
        return NULL;
    }
    x_grow (r->items, r->len, r->cap);
    struct simple_command *c = &r->items[r->len++];
    *c = (struct simple_command){ 0 };
    return c;
}

/* These read a language of their own, and a file of the home first. */
static bool
is_foreign_shell (const char *name)
{
    return str_eq (name, "zsh") || str_eq (name, "fish");
}

/* `sh -c TEXT`: the text is one more script. False: something else is run. */
static bool
read_shell (struct command_reading *r, const struct simple_command *c, unsigned depth)
{
    if (c->words.len < 3 || c->has_expansion || depth == MOST_NESTED ||
        is_foreign_shell (c->words.items[0]) ||
        (! str_eq (c->words.items[1], "-c") && ! str_eq (c->words.items[1], "-ec")))
        return false;
    _cleanup_free_ char *script = x_strdup (c->words.items[2]);
    read_script (script, r, depth + 1);
    return true;
}

static void
end_command (struct command_reading *r, struct simple_command *c, unsigned depth)
{
    judge (c);
    const char *slash = strrchr (c->words.items[0], '/');
    const char *base = slash ? slash + 1 : c->words.items[0];
    /* <c> may move while its script is read. */
    size_t index = (size_t)(c - r->items);
    if (! slash && command_line_is_interpreter (base) && read_shell (r, c, depth)) {
        r->items[index].starts_others = false;
        r->items[index].only_reads = true;
    } else if (slash) {
        c->starts_others = true; /* whatever lies there */
        c->only_reads = false;
    }
}

/* --- scripts --- */

enum next_word { NEXT_IS_WORD, NEXT_IS_WRITTEN, NEXT_IS_COPIED, NEXT_IS_READ, NEXT_IS_MARK };

struct scan {
    struct command_reading *out;
    unsigned depth;
    struct buf word;
    bool has_word, is_computed; /* is_computed: the word is expanded by the shell */
    bool is_quoted;             /* some of the word is */
    enum next_word next;
    struct simple_command *command; /* NULL: between commands */
    bool is_named_by_shell;         /* for and case: their words are no command */
    bool is_after_for;              /* the next word is set by the shell */
    bool is_split;                  /* after "&>", which begins a command in some shells */
    bool is_in_backquotes, repeats; /* repeats: a loop or a function */
    struct strv documents;          /* ends of here-documents that begin at the next line, each
                                     * after a '-' where tabs before it count for nothing */
    bool is_dashed;                 /* the next of them is */
};

static bool
is_number (const char *text)
{
    return *text && strspn (text, "0123456789") == strlen (text);
}

static void
take_argument (struct scan *s, char *word, bool is_computed)
{
    if (s->is_split)
        set_opaque (s->out, "words after &>");
    strv_push (&s->command->words, word);
    s->command->has_expansion |= is_computed;
}

static const char steered[] = "a variable that says which programs run";
static const char *const repeating[] = { "for", "while", "until", "select", "function" };

/* The first words of a command, until its program is there. */
static void
take_beginning (struct scan *s, char *word, bool is_computed)
{
    if (s->is_after_for && steers (word))
        set_opaque (s->out, steered);
    s->is_after_for = false;
    if (s->is_named_by_shell && str_eq (word, "do"))
        s->is_named_by_shell = false; /* for NAME do */
    if (s->is_named_by_shell)
        return;
    s->repeats |= IS_AMONG (word, repeating);
    if (is_assignment (word)) {
        if (steers (word))
            set_opaque (s->out, steered);
        return;
    }
    if (is_computed) {
        set_opaque (s->out, "a program whose name is computed");
        s->is_named_by_shell = true; /* its words mean nothing without it */
    } else if (IS_AMONG (word, marks)) {
        s->is_after_for = str_eq (word, "for");
        s->is_named_by_shell = ! str_eq (word, "export") && ! str_eq (word, "local") &&
                               ! str_eq (word, "readonly") && ! str_eq (word, "declare") &&
                               ! str_eq (word, "}");
    } else if (! IS_AMONG (word, prefixes)) {
        s->command = add_command (s->out);
        if (s->command) {
            strv_push (&s->command->words, word);
            s->command->is_after_cd = s->out->has_cd;
            s->out->has_cd |= str_eq (word, "cd");
        }
    }
}

static const char unclear_document[] = "a here-document whose end is not clear";

static void
end_word (struct scan *s)
{
    if (! s->has_word)
        return;
    _cleanup_free_ char *word = s->word.len ? buf_steal (&s->word) : x_strdup ("");
    enum next_word was = s->next;
    bool is_computed = s->is_computed;
    s->has_word = s->is_computed = s->is_quoted = false;
    s->next = NEXT_IS_WORD;
    if (was == NEXT_IS_READ)
        return;
    if (was == NEXT_IS_MARK) {
        if (is_computed)
            set_opaque (s->out, unclear_document);
        _cleanup_free_ char *mark = x_asprintf ("%s%s", s->is_dashed ? "-" : " ", word);
        strv_push (&s->documents, mark);
    } else if (was == NEXT_IS_WRITTEN || was == NEXT_IS_COPIED) {
        if (was == NEXT_IS_COPIED && (is_number (word) || str_eq (word, "-")))
            return;
        if (is_computed || (s->out->has_cd && word[0] != '/'))
            s->out->writes_elsewhere = true;
        else
            strv_push (&s->out->writes, word);
    } else if (s->command) {
        take_argument (s, word, is_computed);
    } else {
        take_beginning (s, word, is_computed);
    }
}

static void
end_segment (struct scan *s)
{
    end_word (s);
    struct simple_command *c = s->command;
    s->command = NULL;
    s->is_named_by_shell = s->is_after_for = s->is_split = false;
    s->next = NEXT_IS_WORD;
    if (c)
        end_command (s->out, c, s->depth);
}

static const char unclear_expansion[] = "an expansion that may run a command";

/* The '}' of an expansion whose name begins at <c>, when it only looks up, tests or cuts a variable
 * and nothing in it is quoted or nested. Else NULL. */
static const char *
expansion_end (const char *c)
{
    const char *name = c;
    c += *c == '#' && c[1] != '}';
    size_t len = strspn (c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    c += len ? len : (*c && strchr ("@*#?$!-", *c));
    if (str_starts (c, "[@]") || str_starts (c, "[*]"))
        c += 3;
    const char *end = c + strcspn (c, "}");
    _cleanup_free_ char *text = x_strndup (c, (size_t)(end - c));
    bool cuts = c[0] == ':' && c[1 + strspn (c + 1, "0123456789: -")] == '}';
    bool tests =
        (c[0] && strchr ("-=?+%#/,^", c[0])) || (c[0] == ':' && c[1] && strchr ("-=?+", c[1]));
    bool assigns = c[0] == '=' || (c[0] == ':' && c[1] == '=');
    _cleanup_free_ char *variable = x_strndup (name, (size_t)(c - name));
    if (! *end || c == name || (c != end && ! cuts && ! tests) || strpbrk (text, "'\"\\`{[") ||
        strstr (text, "$(") || (assigns && steers (variable)))
        return NULL;
    return end;
}

/* A line of a here-document's body. */
static void
read_document_line (struct scan *s, const char *text)
{
    bool is_plain = ! strchr (text, '`');
    for (const char *c = strchr (text, '$'); c && is_plain; c = strchr (c + 1, '$'))
        is_plain = c[1] == '{' ? expansion_end (c + 2) != NULL : c[1] != '(' && c[1] != '[';
    if (! is_plain)
        set_opaque (s->out, "a command inside a here-document");
}

/* Passes over the bodies of here-documents at the start of a line. The shell expands them. */
static const char *
skip_documents (struct scan *s, const char *line)
{
    for (size_t i = 0; i < s->documents.len; i++) {
        const char *mark = s->documents.items[i];
        bool is_end = false;
        while (*line && ! is_end) {
            size_t len = strcspn (line, "\n");
            _cleanup_free_ char *text = x_strndup (line, len);
            is_end = str_eq (text + (*mark == '-' ? strspn (text, "\t") : 0), mark + 1);
            if (strchr (text, '$') || strchr (text, '`'))
                read_document_line (s, text);
            if (str_ends (text, "\\"))
                set_opaque (s->out, unclear_document);
            line += len + (line[len] == '\n');
        }
        if (! is_end)
            set_opaque (s->out, unclear_document);
    }
    strv_free (&s->documents);
    return line;
}

/* At a '>' or '<': returns the operator's last character. */
static const char *
take_redirection (struct scan *s, const char *c)
{
    bool is_descriptor = s->has_word && ! s->is_quoted && s->word.len && is_number (s->word.data);
    if (is_descriptor) {
        s->has_word = false;
        buf_truncate (&s->word, 0);
    }
    bool is_shift = s->is_computed; /* of a subscript */
    end_word (s);
    if (c[0] == '<' && c[1] == '<' && c[2] != '<') {
        if (is_shift)
            set_opaque (s->out, unclear_document);
        s->next = NEXT_IS_MARK;
        s->is_dashed = c[2] == '-';
        return c + 1 + (c[2] == '-');
    }
    bool is_written = c[0] == '>' || (c[0] == '<' && c[1] == '>');
    s->next = is_written ? NEXT_IS_WRITTEN : NEXT_IS_READ;
    if (c[0] == '>' && c[1] == '&')
        s->next = NEXT_IS_COPIED;
    while (c[1] && strchr (is_written ? ">|&" : "<&>", c[1]))
        c++;
    return c;
}

static void
put (struct scan *s, char c)
{
    buf_putc (&s->word, c);
    s->has_word = true;
}

/* Inside double quotes; returns the closing one, or the last character. */
static const char *
scan_quoted (struct scan *s, const char *c)
{
    s->has_word = s->is_quoted = true;
    for (; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1] && strchr ("$`\"\\\n", c[1])) {
            if (*++c == '\n')
                continue;
        } else if (*c == '$' || *c == '`') {
            s->is_computed = true;
            if (*c == '`' || c[1] == '(')
                set_opaque (s->out, "a command inside a text");
            if (c[1] == '[' || (c[1] == '{' && ! expansion_end (c + 2)))
                set_opaque (s->out, unclear_expansion);
        }
        put (s, *c);
    }
    return *c ? c : c - 1;
}

/* "$((...))" of numbers alone: a variable's value may hold a command. NULL: no such. */
static const char *
sum_end (const char *c)
{
    size_t len = strspn (c, "0123456789 +-*/%<>!&|^~?:");
    return c[len] == ')' && c[len + 1] == ')' ? c + len + 1 : NULL;
}

static const char *
scan_dollar (struct scan *s, const char *c)
{
    s->is_computed = true;
    s->has_word = true;
    const char *end = str_starts (c, "$((") ? sum_end (c + 3) : NULL;
    if (end)
        return end;
    put (s, '$');
    if (c[1] == '\'' || c[1] == '[')
        set_opaque (s->out, unclear_expansion);
    /* After "$(" a command of its own is read. */
    if (c[1] != '{')
        return c;
    end = expansion_end (c + 2);
    if (! end) {
        set_opaque (s->out, unclear_expansion);
        return c + 1;
    }
    for (c++; c < end; c++)
        put (s, *c);
    return end;
}

/* At a '`'. What stands between two of them is read as a script when no character in it means
 * something else there. */
static void
take_backquote (struct scan *s, const char *c)
{
    s->is_in_backquotes = ! s->is_in_backquotes;
    if (! s->is_in_backquotes)
        return;
    const char *end = strchr (c + 1, '`');
    size_t plain = strcspn (c + 1, "\\'\"#<");
    if (! end || plain < (size_t)(end - c - 1))
        set_opaque (s->out, "a command in backquotes");
    s->is_computed = s->has_word = true;
}

/* At a character that ends a command. */
static void
take_operator (struct scan *s, const char *c)
{
    if (*c == '`')
        take_backquote (s, c);
    if ((*c == ')' || *c == '`') && (s->documents.len || s->next == NEXT_IS_MARK))
        set_opaque (s->out, unclear_document);
    if (str_starts (c, "(("))
        set_opaque (s->out, "a sum");
    s->repeats |= *c == '(' && ! s->is_computed && (s->command || s->has_word);
    end_segment (s);
}

static const char *
scan_one (struct scan *s, const char *c)
{
    if (*c == '\\' && c[1]) {
        if (c[1] != '\n') {
            put (s, c[1]);
            s->is_quoted = true;
        }
        return c + 1;
    }
    if (*c == '\'') {
        s->has_word = s->is_quoted = true;
        for (c++; *c && *c != '\''; c++)
            put (s, *c);
        return *c ? c : c - 1;
    }
    if (*c == '"')
        return scan_quoted (s, c + 1);
    if (*c == '$')
        return scan_dollar (s, c);
    if (*c == '#' && ! s->has_word)
        return c + strcspn (c, "\n") - 1;
    if (*c == '&' && c[1] == '>') {
        end_word (s);
        s->is_split = true;
        return take_redirection (s, c + 1);
    }
    if (*c == '<' || *c == '>')
        return take_redirection (s, c);
    if (*c == '\n') {
        end_segment (s);
        return s->documents.len ? skip_documents (s, c + 1) - 1 : c;
    }
    if (strchr (";|&()`", *c)) {
        take_operator (s, c);
        return c;
    }
    if (*c == ' ' || *c == '\t') {
        end_word (s);
        return c;
    }
    bool is_group =
        (*c == '{' || *c == '}') && ! s->has_word && (! c[1] || strchr (" \t\n;", c[1]));
    s->is_computed |= ! is_group && strchr ("*?[{~", *c) != NULL;
    if (*c == '[' && ! s->has_word && (c[1] == ' ' || c[1] == '\t' || c[1] == '['))
        s->is_computed = false; /* the command [ */
    put (s, *c);
    return c;
}

static void
read_script (const char *script, struct command_reading *out, unsigned depth)
{
    struct scan s = { .out = out, .depth = depth };
    for (const char *c = script; *c; c++)
        c = scan_one (&s, c);
    end_segment (&s);
    if (s.documents.len)
        set_opaque (out, unclear_document);
    out->repeats |= s.repeats;
    buf_free (&s.word);
    strv_free (&s.documents);
}

/* --- the outside --- */

void
command_read_script (const char *shell, const char *script, struct command_reading *out)
{
    *out = (struct command_reading){ 0 };
    read_script (script, out, 0);
    if (is_foreign_shell (shell))
        set_opaque (out, "a shell with a language of its own");
    /* What stands before `cd` comes after it, too. */
    for (size_t i = 0; out->has_cd && out->repeats && i < out->len; i++)
        out->items[i].is_after_cd = true;
    out->writes_elsewhere |= out->has_cd && out->repeats && out->writes.len;
}

bool
command_read_program (const char *name, const char *arguments, struct command_reading *out)
{
    *out = (struct command_reading){ 0 };
    struct simple_command *c = add_command (out);
    strv_push (&c->words, name);
    if (! words_split (arguments, &c->words))
        return false;
    end_command (out, c, 0);
    return true;
}

void
command_reading_clear (struct command_reading *r)
{
    for (size_t i = 0; i < r->len; i++)
        strv_free (&r->items[i].words);
    free (r->items);
    strv_free (&r->writes);
    *r = (struct command_reading){ 0 };
}
