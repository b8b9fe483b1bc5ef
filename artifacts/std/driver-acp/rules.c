/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the agent may do what it asks for. The walls hold whatever is answered here; this is so
 * that the agent is told no where the manifest says no, and that nothing it asks is waved through:
 * what no rule speaks of is a person's to say where the manifest has approvals, else refused.
 */
#include "acp.h"

#include <string.h>

static const struct mur_json *config;
static mur_node rules;

void
acp_rules_begin (const struct mur_json *given)
{
    config = given;
    rules = mur_json_get (given, 0, "$rules");
}

bool
acp_rules_are_walled (void)
{
    return mur_json_bool (config, mur_json_get (config, rules, "walls"), false);
}

const char *
acp_rules_folder (void)
{
    char *folder = mur_json_text (config, mur_json_get (config, rules, "folder"));
    return folder != NULL ? folder : "/";
}

static bool
lists (mur_node list, const char *word)
{
    for (mur_node n = mur_json_first (config, list); n >= 0; n = mur_json_next (config, n))
        if (mur_json_is (config, n, word))
            return true;
    return false;
}

/* What the manifest says of a request. */
enum verdict {
    VERDICT_NO,
    VERDICT_YES,
    VERDICT_NONE,
};

/* Words after which another command begins, and words that are commands of the shell itself. */
static const char *const keywords[] = { "if", "then", "else", "elif", "while", "until",
                                        "do", "!",    "{",    "time", NULL };
static const char *const builtins[] = {
    ":",    ".",     "[",      "alias", "break", "case",   "cd",    "command", "continue",
    "done", "echo",  "esac",   "eval",  "exit",  "export", "false", "fi",      "for",
    "hash", "local", "printf", "pwd",   "read",  "return", "set",   "shift",   "source",
    "test", "trap",  "true",   "type",  "umask", "unset",  "wait",  "}",       NULL,
};

static bool
is_among (const char *word, const char *const *words)
{
    while (*words != NULL && strcmp (*words, word) != 0)
        words++;
    return *words != NULL;
}

/* The end of a word of a shell's line, quotes kept together. */
static const char *
word_end (const char *at)
{
    char quote = '\0';
    for (; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0' && quote != '\'')
            at++;
        else if (quote != '\0')
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (strchr (" \t\n;|&<>()", *at) != NULL)
            break;
    }
    return at;
}

/* The first program of a shell's line that no rule allows, without its folder; NULL: none. */
static char *
program_not_allowed (const char *line, mur_node allow)
{
    bool is_command = true;
    for (const char *at = line; *at != '\0';) {
        const char *end = word_end (at);
        if (*at == '<' || *at == '>') { /* what follows is a file, or a number */
            at += strspn (at, "<>&|");
            at = word_end (at + strspn (at, " \t"));
            continue;
        }
        if (end == at) {
            is_command |= strchr (";|&(\n", *at) != NULL;
            at++;
            continue;
        }
        char *word = mur_format ("%.*s", (int)(end - at), at);
        at = end;
        if (! is_command || is_among (word, keywords) || strchr (word, '=') != NULL)
            continue;
        is_command = false;
        char *slash = strrchr (word, '/'), *program = slash != NULL ? slash + 1 : word;
        if (! is_among (program, builtins) && ! lists (allow, program))
            return program;
    }
    return NULL;
}

/* The line of a shell that a call of this kind would run; NULL: it does not say. Some say it in
 * the call's title alone, which may be a mere description: <is_sure> is false then. */
static char *
command_of (const struct mur_json *line, mur_node call, bool *is_sure)
{
    const struct mur_json *asked = line;
    mur_node input = mur_json_get (line, call, "rawInput");
    const char *before =
        acp_call_input (mur_json_text (line, mur_json_get (line, call, "toolCallId")));
    if (mur_json_kind (line, input) != MUR_JSON_OBJECT && before != NULL) {
        line = mur_json_parse (before, strlen (before));
        input = 0;
    }
    mur_node command = mur_json_get (line, input, "command");
    if (mur_json_kind (line, command) == MUR_JSON_ABSENT)
        command = mur_json_get (line, input, "cmd");
    if (mur_json_kind (line, command) == MUR_JSON_ARRAY)
        command = mur_json_at (line, command, 0);
    char *text = mur_json_text (line, command);
    *is_sure = text != NULL;
    return text != NULL ? text : mur_json_text (asked, mur_json_get (asked, call, "title"));
}

static const char *
judge_command (const struct mur_json *line, mur_node call, enum verdict *verdict)
{
    mur_node allow = mur_json_get (config, rules, "shell");
    bool is_sure;
    char *text = command_of (line, call, &is_sure);
    if (mur_json_count (config, allow) == 0)
        return "capabilities.shell allows nothing";
    char *missing = text != NULL ? program_not_allowed (text, allow) : NULL;
    if (text == NULL || text[0] == '\0' || (missing != NULL && ! is_sure))
        return "it does not say which program it runs";
    *verdict = missing == NULL ? VERDICT_YES : VERDICT_NO;
    return missing == NULL ? "shell.allow has its programs"
                           : mur_format ("shell.allow has no %s", missing);
}

static bool
only_reads (const char *kind)
{
    return strcmp (kind, "read") == 0 || strcmp (kind, "search") == 0 ||
           strcmp (kind, "think") == 0;
}

static bool
lies_in (const char *path, const char *folder)
{
    const char *root = acp_rules_folder ();
    size_t len = strlen (folder), base = strlen (root);
    if (strncmp (path, root, base) == 0)
        path += base + (path[base] == '/');
    if (strcmp (folder, ".") == 0)
        return true;
    while (len > 0 && folder[len - 1] == '/')
        len--;
    return strncmp (path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static const char *
judge_change (const struct mur_json *line, mur_node call, enum verdict *verdict)
{
    mur_node protected_paths = mur_json_get (config, rules, "read_only"),
             locations = mur_json_get (line, call, "locations");
    bool is_walled = acp_rules_are_walled ();
    for (mur_node n = mur_json_first (line, locations); n >= 0; n = mur_json_next (line, n)) {
        char *path = mur_json_text (line, mur_json_get (line, n, "path"));
        for (mur_node r = mur_json_first (config, protected_paths); path != NULL && r >= 0;
             r = mur_json_next (config, r))
            if (lies_in (path, mur_json_text (config, r)))
                return mur_format ("filesystem.read_only has %s", path);
    }
    *verdict = is_walled ? VERDICT_YES : VERDICT_NO;
    return is_walled ? "the work folder may be written" : "no rule allows it outside the walls";
}

static const char *
judge (const struct mur_json *line, mur_node call, const char *kind, enum verdict *verdict)
{
    char *title = mur_json_text (line, mur_json_get (line, call, "title"));
    *verdict = VERDICT_NO;
    if (lists (mur_json_get (config, 0, "deny"), kind))
        return "inference.driver.config.deny has it";
    if (lists (mur_json_get (config, 0, "allow"), kind)) {
        *verdict = VERDICT_YES;
        return "inference.driver.config.allow has it";
    }
    if (acp_capsule_tool (title) != NULL ||
        (title != NULL && strncmp (title, "mcp__murmur__", 13) == 0)) {
        *verdict = VERDICT_YES; /* its gates are asked when it is called */
        return "it is a tool of the capsule";
    }
    if (strcmp (kind, "execute") == 0)
        return judge_command (line, call, verdict);
    if (strcmp (kind, "edit") == 0 || strcmp (kind, "delete") == 0 || strcmp (kind, "move") == 0)
        return judge_change (line, call, verdict);
    if (strcmp (kind, "fetch") == 0) {
        bool grants = mur_json_bool (config, mur_json_get (config, rules, "network"), false);
        *verdict = grants ? VERDICT_YES : VERDICT_NO;
        return grants ? "network.allow grants hosts" : "network.allow grants no host";
    }
    *verdict = only_reads (kind) ? VERDICT_YES : VERDICT_NONE;
    return only_reads (kind) ? "it changes nothing" : "no rule speaks of it";
}

/* The option to answer with: this once, for what is allowed once is asked again. NULL: none. */
static char *
option_of (const struct mur_json *line, mur_node options, bool is_allowed)
{
    static const char *const kinds[2][2] = { { "reject_once", "reject_always" },
                                             { "allow_once", "allow_always" } };
    for (size_t i = 0; i < 2; i++)
        for (mur_node n = mur_json_first (line, options); n >= 0; n = mur_json_next (line, n))
            if (mur_json_is (line, mur_json_get (line, n, "kind"), kinds[is_allowed][i]))
                return mur_json_text (line, mur_json_get (line, n, "optionId"));
    return NULL;
}

/* The answer to the request, up to where a reason may stand. */
static struct mur_text
answer_to (const struct mur_json *line, mur_node options, bool is_allowed)
{
    struct mur_text answer = { 0 };
    char *option = option_of (line, options, is_allowed);
    mur_text_printf (&answer, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"outcome\":{",
                     mur_harness_value (line, mur_json_get (line, 0, "id")));
    mur_text_string (&answer, "outcome", option != NULL ? "selected" : "cancelled");
    mur_text_string (&answer, "optionId", option);
    mur_text_puts (&answer, "}");
    return answer;
}

/* All that is known of the call. */
static char *
input_of (const struct mur_json *line, mur_node call)
{
    const char *before =
        acp_call_input (mur_json_text (line, mur_json_get (line, call, "toolCallId")));
    return mur_format ("{\"call\":%s,\"input\":%s}", mur_harness_object (line, call),
                       before != NULL ? before : "{}");
}

/* What the manifest does not forbid goes to its approvals. */
static void
ask (const struct mur_json *line, mur_node call, const char *kind, bool is_asked_anyway)
{
    mur_node options = mur_json_get (line, mur_json_get (line, 0, "params"), "options");
    struct mur_text allow = answer_to (line, options, true),
                    refuse = answer_to (line, options, false);
    bool is_sure = true;
    char *command = strcmp (kind, "execute") == 0 ? command_of (line, call, &is_sure) : NULL;
    mur_text_puts (&allow, "}}\n");
    mur_text_puts (&refuse, ",\"_meta\":{\"reason\":");
    mur_event_permission (&(struct mur_permission){
        .id = mur_json_text (line, mur_json_get (line, call, "toolCallId")),
        .tool = kind,
        .input = input_of (line, call),
        .command = command,
        .only_reads = only_reads (kind),
        .is_asked_anyway = is_asked_anyway || ! is_sure,
        .allow = allow.data,
        .refuse = { refuse.data, "}}}\n" },
    });
}

void
acp_permission (const struct mur_json *line)
{
    mur_node params = mur_json_get (line, 0, "params"),
             call = mur_json_get (line, params, "toolCall"),
             options = mur_json_get (line, params, "options");
    char *kind = mur_json_text (line, mur_json_get (line, call, "kind")),
         *title = mur_json_text (line, mur_json_get (line, call, "title"));
    if (title != NULL) /* for the notes below */
        title[mur_utf8_prefix (title, strlen (title), 200)] = '\0';
    const char *before =
        acp_call_kind (mur_json_text (line, mur_json_get (line, call, "toolCallId")));
    if (kind == NULL || (strcmp (kind, "other") == 0 && before != NULL))
        kind = mur_format ("%s", before != NULL ? before : "other");
    enum verdict verdict;
    const char *why = judge (line, call, kind, &verdict);
    bool has_approvals = mur_json_bool (config, mur_json_get (config, rules, "approvals"), false),
         is_allowed = verdict == VERDICT_YES && option_of (line, options, true) != NULL;
    if (has_approvals && verdict != VERDICT_NO) {
        mur_event_note (mur_format ("permission to %s %s goes to approvals: %s", kind,
                                    title != NULL ? title : "", why));
        ask (line, call, kind, verdict == VERDICT_NONE);
        return;
    }
    struct mur_text answer = answer_to (line, options, is_allowed);
    mur_text_puts (&answer, "}}\n");
    mur_event_reply (answer.data, answer.len);
    mur_text_free (&answer);
    mur_event_note (mur_format ("permission was %s to %s %s: %s", is_allowed ? "given" : "refused",
                                kind, title != NULL ? title : "", why));
}
