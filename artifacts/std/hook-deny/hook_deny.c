/* SPDX-License-Identifier: Apache-2.0
 *
 * std/hook-deny: refuses calls by rules (README.md says its config).
 *
 * Always true: a config that cannot be read, and a rule with a member that is not known, refuse
 * every call; a policy never fails open.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_hook.h"

#include "words.h"

/* --- Patterns --- */

static bool
matches (const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    pattern += strspn (pattern, "*");
    return *pattern == '\0';
}

/* A path without what changes nothing: `./`, doubled slashes, a folder and the way back. */
static char *
plain_path (const char *path)
{
    struct mur_text plain = { 0 };
    mur_text_add (&plain, "/", *path == '/' ? 1 : 0);
    for (const char *at = path; *at != '\0';) {
        at += strspn (at, "/");
        size_t len = strcspn (at, "/");
        char *slash = plain.len > 0 ? strrchr (plain.data, '/') : NULL;
        bool is_back = len == 2 && memcmp (at, "..", 2) == 0 && plain.len > 0;
        if (is_back) {
            plain.len = slash != NULL ? (size_t)(slash - plain.data) : 0;
            plain.data[plain.len] = '\0';
        } else if (len > 0 && ! (len == 1 && *at == '.')) {
            if (plain.len > 0 && plain.data[plain.len - 1] != '/')
                mur_text_puts (&plain, "/");
            mur_text_add (&plain, at, len);
        }
        at += len;
    }
    return plain.data;
}

static bool
matches_value (const char *pattern, const char *value)
{
    char *plain = plain_path (value);
    bool is_match = matches (pattern, value) || matches (pattern, plain);
    free (plain);
    return is_match;
}

/* --- A call --- */

struct asked {
    const char *tool;
    struct mur_json *input;
    char *command;  /* of a program; NULL: the call is no command */
    bool is_script; /* the program is an interpreter */
};

static bool
is_interpreter (const char *name)
{
    static const char *const names[] = { "sh",   "bash", "dash",  "ash",     "zsh",    "ksh",
                                         "mksh", "fish", "csh",   "tcsh",    "perl",   "ruby",
                                         "node", "deno", "bun",   "php",     "awk",    "gawk",
                                         "mawk", "lua",  "tclsh", "Rscript", "busybox" };
    if (strncmp (name, "python", 6) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp (name, names[i]) == 0)
            return true;
    return false;
}

/* Calls `does` for the words of each simple command, the program's own first. */
static bool
any_command (const struct asked *asked, bool (*does) (const struct words *, void *), void *context)
{
    bool is_match = false;
    if (asked->command == NULL)
        return false;
    char *whole = mur_format ("%s %s", asked->tool, asked->command);
    const char *at = whole;
    struct words words = words_next (&at, false);
    is_match = does (&words, context);
    words_free (&words);
    at = asked->is_script ? asked->command : NULL;
    while (at != NULL && ! is_match) {
        words = words_next (&at, true);
        is_match = words.count > 0 && does (&words, context);
        words_free (&words);
    }
    free (whole);
    return is_match;
}

/* --- Members of a rule --- */

struct list {
    const struct mur_json *json;
    mur_node node;
};

static bool
begins_with (const struct words *words, void *context)
{
    const struct list *list = context;
    size_t i = 0;
    for (mur_node n = mur_json_first (list->json, list->node); n >= 0;
         n = mur_json_next (list->json, n), i++) {
        char *pattern = mur_json_text (list->json, n);
        bool is_match = pattern != NULL && i < words->count && matches (pattern, words->items[i]);
        free (pattern);
        if (! is_match)
            return false;
    }
    return i > 0;
}

static bool
has_word (const struct words *words, void *context)
{
    for (size_t i = 0; i < words->count; i++)
        if (matches (context, words->items[i]))
            return true;
    return false;
}

/* The member of the input that a dotted name leads to. */
static mur_node
member_of (const struct mur_json *input, const char *name)
{
    mur_node at = 0;
    char *copy = mur_format ("%s", name);
    for (char *part = strtok (copy, "."); part != NULL && at >= 0; part = strtok (NULL, "."))
        at = mur_json_get (input, at, part);
    free (copy);
    return at;
}

static bool
has_members (const struct asked *asked, const struct mur_json *config, mur_node wanted)
{
    for (mur_node n = mur_json_first (config, wanted); n >= 0; n = mur_json_next (config, n)) {
        char *name = mur_json_key (config, n), *pattern = mur_json_text (config, n);
        mur_node found = member_of (asked->input, name);
        char *value = mur_json_text (asked->input, found);
        size_t len = 0, raw_len = 0;
        const char *raw = mur_json_raw (asked->input, found, &len);
        const char *same = mur_json_raw (config, n, &raw_len);
        bool is_match = pattern != NULL && value != NULL
                            ? matches_value (pattern, value)
                            : found >= 0 && len == raw_len && memcmp (raw, same, len) == 0;
        free (value);
        free (pattern);
        free (name);
        if (! is_match)
            return false;
    }
    return true;
}

enum verdict {
    RULE_OTHER, /* it is about something else */
    RULE_MATCHES,
    RULE_UNREADABLE,
};

static enum verdict
judge_member (const struct asked *asked, const struct mur_json *config, const char *key,
              mur_node value)
{
    char *text = mur_json_text (config, value);
    enum mur_json_kind kind = mur_json_kind (config, value);
    bool is_readable = kind == MUR_JSON_STRING, is_match = false;
    if (strcmp (key, "tool") == 0)
        is_match = is_readable && matches (text, asked->tool);
    else if (strcmp (key, "word") == 0)
        is_match = is_readable && any_command (asked, has_word, text);
    else if (strcmp (key, "script") == 0)
        is_match = is_readable && asked->is_script && asked->command != NULL &&
                   matches (text, asked->command);
    else if (strcmp (key, "reason") == 0)
        is_match = true;
    else if (strcmp (key, "allow") == 0)
        is_match = is_readable = kind == MUR_JSON_BOOL;
    else if (strcmp (key, "argv") == 0 && (is_readable = kind == MUR_JSON_ARRAY))
        is_match = any_command (asked, begins_with, &(struct list){ config, value });
    else if (strcmp (key, "input") == 0 && (is_readable = kind == MUR_JSON_OBJECT))
        is_match = has_members (asked, config, value);
    else
        is_readable = false;
    free (text);
    return ! is_readable ? RULE_UNREADABLE : is_match ? RULE_MATCHES : RULE_OTHER;
}

static enum verdict
judge_rule (const struct asked *asked, const struct mur_json *config, mur_node rule)
{
    enum verdict verdict = mur_json_count (config, rule) > 0 ? RULE_MATCHES : RULE_UNREADABLE;
    if (mur_json_kind (config, rule) != MUR_JSON_OBJECT)
        return RULE_UNREADABLE;
    for (mur_node n = mur_json_first (config, rule); n >= 0; n = mur_json_next (config, n)) {
        char *key = mur_json_key (config, n);
        enum verdict member = judge_member (asked, config, key, n);
        free (key);
        if (member == RULE_UNREADABLE)
            return member;
        if (member == RULE_OTHER)
            verdict = member;
    }
    return verdict;
}

/* --- The decision --- */

static void
deny_by (struct mur_hook_output *out, const struct mur_json *config, mur_node rule, size_t number)
{
    char *reason = mur_json_text (config, mur_json_get (config, rule, "reason"));
    if (reason != NULL && reason[strspn (reason, " \t\r\n")] != '\0')
        mur_hook_deny (out, "%s", reason);
    else
        mur_hook_deny (out, "rule %zu of this capsule's policy forbids it", number);
    free (reason);
}

static void
decide (const struct asked *asked, const struct mur_json *config, struct mur_hook_output *out)
{
    mur_node rules = mur_json_get (config, 0, "rules");
    mur_node fallback = mur_json_get (config, 0, "default");
    bool is_closed = mur_json_is (config, fallback, "deny");
    size_t number = 0;
    if (mur_json_count (config, rules) == 0 || mur_json_kind (config, rules) != MUR_JSON_ARRAY) {
        mur_hook_deny (out, "std/hook-deny has no rules: config.rules is empty or no list");
        return;
    }
    if (fallback >= 0 && ! is_closed && ! mur_json_is (config, fallback, "allow")) {
        mur_hook_deny (out, "std/hook-deny: config.default is neither allow nor deny");
        return;
    }
    for (mur_node n = mur_json_first (config, rules); n >= 0; n = mur_json_next (config, n)) {
        enum verdict verdict = judge_rule (asked, config, n);
        number++;
        if (verdict == RULE_UNREADABLE)
            mur_hook_deny (out, "std/hook-deny: rule %zu of config.rules cannot be read", number);
        else if (verdict == RULE_MATCHES &&
                 ! mur_json_bool (config, mur_json_get (config, n, "allow"), false))
            deny_by (out, config, n, number);
        if (verdict != RULE_OTHER)
            return;
    }
    if (is_closed)
        mur_hook_deny (out, "no rule of this capsule's policy allows it");
}

void
mur_on_tool_call (const struct mur_tool_event *event, struct mur_hook_output *out)
{
    if (event->outcome != NULL)
        return;
    struct mur_json *config = mur_config ();
    struct asked asked = { .tool = event->tool_name,
                           .input = mur_json_parse (event->input, strlen (event->input)),
                           .is_script = is_interpreter (event->tool_name) };
    asked.command = mur_json_text (asked.input, mur_json_get (asked.input, 0, "command"));
    decide (&asked, config, out);
    free (asked.command);
    mur_json_free (asked.input);
    mur_json_free (config);
}
