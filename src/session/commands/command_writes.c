/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/command_writes.h"

#include "base/alloc.h"
#include "base/words.h"
#include "session/commands/shell.h"
#include "session/state/session.h"

#include <ctype.h>
#include <string.h>

enum operands {
    OPERANDS_ALL,
    OPERANDS_LAST,
    OPERANDS_SED,
    OPERANDS_DD,
};

static const struct {
    const char *verb;
    enum operands written;
} verbs[] = {
    { "tee", OPERANDS_ALL },    { "rm", OPERANDS_ALL },    { "rmdir", OPERANDS_ALL },
    { "unlink", OPERANDS_ALL }, { "shred", OPERANDS_ALL }, { "truncate", OPERANDS_ALL },
    { "mkdir", OPERANDS_ALL },  { "touch", OPERANDS_ALL }, { "chmod", OPERANDS_ALL },
    { "chown", OPERANDS_ALL },  { "patch", OPERANDS_ALL }, { "mv", OPERANDS_LAST },
    { "cp", OPERANDS_LAST },    { "ln", OPERANDS_LAST },   { "install", OPERANDS_LAST },
    { "sed", OPERANDS_SED },    { "dd", OPERANDS_DD },
};

/* Words before the verb that run what follows them. */
static const char *const prefixes[] = { "if",  "then", "else", "elif",   "while", "until",
                                        "do",  "!",    "{",    "time",   "exec",  "nohup",
                                        "env", "sudo", "nice", "command" };

static bool
is_prefix (const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN (prefixes); i++)
        if (str_eq (prefixes[i], word))
            return true;
    const char *equals = strchr (word, '=');
    return equals && equals > word && ! memchr (word, '/', (size_t)(equals - word));
}

static bool
tell (const char *verb, const char *path, command_write_fn *fn, void *ctx)
{
    _cleanup_free_ char *signal = x_asprintf ("operand '%s' of %s", path, verb);
    return fn (ctx, path, signal);
}

static bool
judge_operands (const char *verb, enum operands written, char *const *words, size_t count,
                command_write_fn *fn, void *ctx)
{
    _cleanup_strv_ struct strv operands = { 0 };
    bool is_plain = false, edits_in_place = false, has_script = false;
    for (size_t i = 0; i < count; i++) {
        const char *w = words[i];
        if (! is_plain && str_eq (w, "--")) {
            is_plain = true;
        } else if (is_plain || w[0] != '-' || ! w[1]) {
            strv_push (&operands, w);
        } else {
            edits_in_place |= str_starts (w, "--in-place") || (w[1] != '-' && strchr (w, 'i'));
            has_script |= str_starts (w, "--expression") || str_starts (w, "--file") ||
                          str_eq (w, "-e") || str_eq (w, "-f");
            if (written == OPERANDS_LAST && str_starts (w, "--target-directory=") &&
                tell (verb, strchr (w, '=') + 1, fn, ctx))
                return true;
            if (written == OPERANDS_LAST && str_eq (w, "-t") && i + 1 < count &&
                tell (verb, words[i + 1], fn, ctx))
                return true;
        }
    }
    size_t first = 0;
    if (written == OPERANDS_LAST)
        first = operands.len ? operands.len - 1 : 0;
    if (written == OPERANDS_SED)
        first = ! edits_in_place ? operands.len : has_script ? 0 : 1;
    for (size_t i = first; i < operands.len; i++) {
        const char *path = operands.items[i];
        if (written == OPERANDS_DD) {
            if (! str_starts (path, "of="))
                continue;
            path += strlen ("of=");
        }
        if (tell (verb, path, fn, ctx))
            return true;
    }
    return false;
}

static bool
judge_words (const struct strv *words, command_write_fn *fn, void *ctx)
{
    size_t at = 0;
    while (at < words->len && is_prefix (words->items[at]))
        at++;
    if (at == words->len)
        return false;
    const char *slash = strrchr (words->items[at], '/');
    const char *verb = slash ? slash + 1 : words->items[at];
    for (size_t i = 0; i < ARRAY_LEN (verbs); i++)
        if (str_eq (verbs[i].verb, verb))
            return judge_operands (verb, verbs[i].written, words->items + at + 1,
                                   words->len - at - 1, fn, ctx);
    return false;
}

/* --- scripts --- */

enum next_word {
    NEXT_IS_WORD,
    NEXT_IS_WRITTEN, /* after > and its kin */
    NEXT_IS_COPIED,  /* after >&: a descriptor's number, else a file */
    NEXT_IS_READ,
};

struct scan {
    struct strv words; /* of the segment */
    struct buf word;
    bool has_word;
    enum next_word next;
    command_write_fn *fn;
    void *ctx;
};

static bool
is_number (const char *text)
{
    return *text && strspn (text, "0123456789") == strlen (text);
}

/* Ends the word; true when the caller is to stop. */
static bool
end_word (struct scan *s)
{
    if (! s->has_word)
        return false;
    _cleanup_free_ char *word = s->word.len ? buf_steal (&s->word) : x_strdup ("");
    enum next_word was = s->next;
    s->has_word = false;
    s->next = NEXT_IS_WORD;
    if (was == NEXT_IS_WORD) {
        strv_push (&s->words, word);
    } else if (was == NEXT_IS_WRITTEN ||
               (was == NEXT_IS_COPIED && ! is_number (word) && ! str_eq (word, "-"))) {
        _cleanup_free_ char *signal = x_asprintf ("output redirected to '%s'", word);
        return s->fn (s->ctx, word, signal);
    }
    return false;
}

static bool
end_segment (struct scan *s)
{
    bool is_done = end_word (s) || judge_words (&s->words, s->fn, s->ctx);
    strv_free (&s->words);
    s->next = NEXT_IS_WORD;
    return is_done;
}

/* At a '>': takes the operator; returns its last character's place. */
static const char *
take_redirection (struct scan *s, const char *c)
{
    if (s->has_word && is_number (s->word.len ? s->word.data : "x")) {
        s->has_word = false; /* the number of a descriptor */
        buf_truncate (&s->word, 0);
    }
    s->next = NEXT_IS_WRITTEN;
    if (c[1] == '>' || c[1] == '|')
        return c + 1;
    if (c[1] == '&') {
        s->next = NEXT_IS_COPIED;
        return c + 1;
    }
    return c;
}

static void
put (struct scan *s, char c)
{
    buf_putc (&s->word, c);
    s->has_word = true;
}

static bool
scan_script (struct scan *s, const char *c)
{
    for (char quote = 0; *c; c++) {
        if (quote == '\'' ? *c != '\'' : *c == '\\' && c[1] ? true : quote && *c != quote) {
            if (*c == '\\' && quote != '\'')
                c++;
            put (s, *c);
        } else if (quote) {
            quote = 0;
        } else if (*c == '\'' || *c == '"') {
            quote = *c;
            s->has_word = true;
        } else if (*c == '#' && ! s->has_word) {
            c += strcspn (c, "\n") - 1; /* the newline ends the segment */
        } else if (*c == '>' || (*c == '&' && c[1] == '>')) {
            bool is_both = *c == '&';
            c += is_both;
            if (! is_both && s->has_word && s->next == NEXT_IS_WORD &&
                is_number (s->word.len ? s->word.data : "x"))
                ; /* taken below */
            else if (end_word (s))
                return true;
            c = take_redirection (s, c);
        } else if (*c == '<') {
            if (end_word (s))
                return true;
            c += strspn (c, "<&-") - 1;
            s->next = NEXT_IS_READ;
        } else if (strchr (";\n|&()`", *c)) {
            if (end_segment (s))
                return true;
        } else if (isspace ((unsigned char)*c)) {
            if (end_word (s))
                return true;
        } else {
            put (s, *c);
        }
    }
    return end_segment (s);
}

bool
command_writes_of_script (const char *script, command_write_fn *fn, void *ctx)
{
    struct scan s = { .fn = fn, .ctx = ctx };
    bool is_done = scan_script (&s, script);
    strv_free (&s.words);
    buf_free (&s.word);
    return is_done;
}

bool
command_writes_of_program (const char *name, const char *arguments, command_write_fn *fn, void *ctx)
{
    _cleanup_strv_ struct strv words = { 0 };
    strv_push (&words, name);
    if (! words_split (arguments, &words))
        return false; /* it will not be started */
    return judge_words (&words, fn, ctx);
}
