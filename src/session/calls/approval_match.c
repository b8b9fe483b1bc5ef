/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/approval_match.h"

#include "base/alloc.h"
#include "base/words.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/text/grammar.h"
#include "net/url.h"
#include "session/calls/command_read.h"
#include "session/calls/read_only.h"
#include "session/commands/shell.h"
#include "session/state/command_line.h"
#include "session/state/provided.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* One call beside the rules. */
struct match {
    struct session *s;
    const struct call *call;
    const struct staged_artifact *artifact; /* NULL: none of that name */
    bool is_command;                        /* of shell.allow, and <reading> is filled */
    struct command_reading reading;
    const char *unseen_by;
};

static const char *
bare (const char *full_name)
{
    const char *slash = strrchr (full_name, '/');
    return slash ? slash + 1 : full_name;
}

/* --- tools --- */

static bool
hits_tool (struct match *m, const char *text)
{
    return str_eq (text, "*") || str_eq (text, m->call->name) ||
           (m->artifact && (str_eq (text, m->artifact->full_name) ||
                            str_eq (text, bare (m->artifact->full_name))));
}

/* --- commands --- */

/* Git runs what an alias says for a word that is no command of its own. */
static const char *const git_commands[] = {
    "add",    "bisect",    "blame", "branch", "checkout", "cherry-pick", "clean",  "clone",
    "commit", "describe",  "diff",  "fetch",  "grep",     "init",        "log",    "ls-files",
    "merge",  "mv",        "pull",  "push",   "reflog",   "remote",      "reset",  "restore",
    "revert", "rev-parse", "rm",    "show",   "stash",    "status",      "switch", "tag"
};

static bool
git_is_plain (const struct simple_command *c)
{
    for (size_t i = 1; i < c->words.len; i++) {
        const char *word = c->words.items[i];
        if (str_eq (word, "-C")) {
            i++;
        } else if (word[0] == '-' && (str_starts (word, "-c") || str_starts (word, "--c") ||
                                      str_starts (word, "--e"))) {
            return false;
        } else if (word[0] != '-') {
            for (size_t k = 0; k < ARRAY_LEN (git_commands); k++)
                if (str_eq (git_commands[k], word))
                    return true;
            return false;
        }
    }
    return true;
}

/* The words of the rule follow each other in the command, others between them. */
static bool
has_words (const struct simple_command *c, const struct strv *rule)
{
    size_t at = 1;
    for (size_t i = 1; i < c->words.len && at < rule->len; i++)
        if (str_eq (c->words.items[i], rule->items[at]))
            at++;
    return at == rule->len;
}

static bool
hits_command (struct match *m, const char *text)
{
    _cleanup_strv_ struct strv rule = { 0 };
    if (! m->is_command || ! words_split (text, &rule) || ! rule.len)
        return false;
    for (size_t i = 0; i < m->reading.len; i++) {
        const struct simple_command *c = &m->reading.items[i];
        bool is_own = str_eq (c->words.items[0], rule.items[0]);
        if (is_own && has_words (c, &rule)) {
            m->unseen_by = NULL;
            return true;
        }
        bool is_plain =
            is_own && ! c->has_expansion && (! str_eq (rule.items[0], "git") || git_is_plain (c));
        if (! m->unseen_by && (is_own ? ! is_plain : c->starts_others))
            m->unseen_by = c->words.items[0];
    }
    if (! m->unseen_by && m->reading.is_opaque)
        m->unseen_by = m->reading.opaque_by;
    return m->unseen_by != NULL;
}

/* --- hosts --- */

static bool
is_host_letter (char c)
{
    return isalnum ((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* The host stands in the text by itself, not as part of a longer name. */
static bool
names_host (const char *text, const char *host)
{
    size_t len = strlen (host);
    for (const char *at = text; (at = strcasestr (at, host)); at++) {
        const char *after = at + len;
        bool ends = ! is_host_letter (*after) || (*after == '.' && ! is_host_letter (after[1]));
        if ((at == text || ! is_host_letter (at[-1])) && ends)
            return true;
    }
    return false;
}

static bool
lists_host (const struct str_list *list, const char *host)
{
    for (size_t i = 0; i < list->len; i++)
        if (names_host (list->items[i], host))
            return true;
    return false;
}

/* A tool whose own grant is that host, or whose gateway leads there, needs no host in its words. */
static bool
hits_host (struct match *m, const char *text)
{
    _cleanup_allow_list_ struct allow_list rule = { 0 };
    struct mur_error *err = NULL;
    if (! allow_list_add (&rule, text, &err)) {
        mur_error_free (err);
        return false;
    }
    const char *host = rule.rules[0].host;
    const struct staged_artifact *a = m->is_command ? NULL : m->artifact;
    const struct gateway_block *gateway = a ? a->entry->gateway : NULL;
    return names_host (m->call->input_text, host) ||
           (a && a->grant->has_own_network && lists_host (&a->grant->network, host)) ||
           (gateway && gateway->written_endpoint && names_host (gateway->written_endpoint, host));
}

/* --- paths --- */

/* A file with a second name may be one of the tree's. */
static bool
has_other_names (const char *base, const char *path)
{
    struct stat st;
    _cleanup_free_ char *joined =
        path[0] == '/' ? x_strdup (path) : x_asprintf ("%s/%s", base, path);
    return stat (joined, &st) == 0 && S_ISREG (st.st_mode) && st.st_nlink > 1;
}

/* The path is in the tree, or the tree in it. */
static bool
touches (struct match *m, const char *base, const char *path, const char *tree)
{
    if (! *path || strchr (path, '\n') || strlen (path) >= 4096)
        return false;
    _cleanup_free_ char *relative = read_only_relative (m->s, base, path);
    _cleanup_free_ char *real = read_only_relative (m->s, m->s->places.work_path, tree);
    if (! relative)
        return false;
    if (subpath_is_within (relative, tree) || (real && subpath_is_within (relative, real)) ||
        subpath_is_within (tree, relative) || ! *relative)
        return true;
    return has_other_names (base, path);
}

static bool
command_writes (struct match *m, const char *tree)
{
    const char *work = m->s->places.work_path;
    const struct command_reading *r = &m->reading;
    for (size_t i = 0; i < r->writes.len; i++)
        if (touches (m, work, r->writes.items[i], tree))
            return true;
    for (size_t i = 0; i < r->len; i++) {
        const struct simple_command *c = &r->items[i];
        if (c->only_reads)
            continue;
        bool is_unseen = c->starts_others || c->has_expansion || c->is_after_cd;
        for (size_t k = 1; k < c->words.len && ! is_unseen; k++) {
            const char *equals = strchr (c->words.items[k], '=');
            if (touches (m, work, c->words.items[k], tree) ||
                (equals && touches (m, work, equals + 1, tree)))
                return true;
        }
        if (is_unseen && ! m->unseen_by)
            m->unseen_by = c->words.items[0];
    }
    if (! m->unseen_by && r->writes_elsewhere)
        m->unseen_by = "a file whose name is computed";
    if (! m->unseen_by && r->is_opaque)
        m->unseen_by = r->opaque_by;
    return m->unseen_by != NULL;
}

/* A call that says it only looks. */
static bool
says_it_reads (const json_t *input)
{
    static const char *const keys[] = { "action", "operation", "op", "mode", "command" };
    static const char *const words[] = { "read", "list", "search", "get",  "stat", "view",
                                         "cat",  "find", "grep",   "show", "ls",   "exists" };
    for (size_t i = 0; i < ARRAY_LEN (keys); i++)
        for (size_t k = 0; k < ARRAY_LEN (words); k++)
            if (str_eq (json_get_string (input, keys[i]), words[k]))
                return true;
    return false;
}

static bool
value_touches (struct match *m, const char *base, const json_t *value, const char *tree)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_string (value))
        return touches (m, base, json_string_value (value), tree);
    if (json_is_object (value))
        json_object_foreach ((json_t *)(uintptr_t)value, key,
                             member) if (value_touches (m, base, member, tree)) return true;
    if (json_is_array (value))
        json_array_foreach (value, i,
                            member) if (value_touches (m, base, member, tree)) return true;
    return false;
}

static bool
hits_path (struct match *m, const char *text)
{
    const char *why;
    _cleanup_free_ char *tree = subpath_lower (text, &why);
    if (! tree)
        return false;
    if (m->is_command)
        return command_writes (m, tree);
    if (m->call->is_harness_asking)
        return ! m->call->only_reads &&
               value_touches (m, m->s->places.work_path, m->call->input, tree);
    if (! m->artifact || m->artifact->role != ROLE_TOOL || says_it_reads (m->call->input))
        return false;
    const char *scope = m->artifact->grant->scope_dir;
    _cleanup_free_ char *base = scope && scope[0]
                                    ? x_asprintf ("%s/%s", m->s->places.work_path, scope)
                                    : x_strdup (m->s->places.work_path);
    return value_touches (m, base, m->call->input, tree);
}

/* --- capsules --- */

static bool
hits_capsule (struct match *m, const char *text)
{
    const char *capsule = str_eq (m->call->name, "delegate-task")
                              ? json_get_string (m->call->input, "capsule")
                              : NULL;
    return capsule && str_eq (bare (capsule), bare (text));
}

/* --- the rules --- */

static bool (*const hits[]) (struct match *m, const char *text) = {
    [APPROVAL_TOOL] = hits_tool, [APPROVAL_COMMAND] = hits_command, [APPROVAL_HOST] = hits_host,
    [APPROVAL_PATH] = hits_path, [APPROVAL_CAPSULE] = hits_capsule,
};

/* False: the call's input is none, and dispatch will refuse it. */
static bool
read_command (struct match *m)
{
    const char *name = m->call->name;
    if (m->call->is_harness_asking) {
        m->is_command = m->call->script != NULL;
        if (m->is_command)
            command_read_script ("sh", m->call->script, &m->reading);
        return true;
    }
    m->is_command = ! provided_find (m->s, name) && shell_is_offered (m->s, name);
    if (! m->is_command)
        return true;
    const char *command = json_get_string (m->call->input, "command");
    if (! command_line_is_interpreter (name))
        return command_read_program (name, command ? command : "", &m->reading);
    if (command)
        command_read_script (name, command, &m->reading);
    return command != NULL;
}

void
approval_match (struct session *s, const struct call *call, struct approval_hits *out)
{
    const struct approval_rules *rules = &s->policy->approvals;
    struct match m = { .s = s, .call = call, .artifact = session_artifact (s, call->name) };
    *out = (struct approval_hits){ 0 };
    if (read_command (&m)) {
        out->items = x_new_array (struct approval_hit, rules->len + 1);
        for (size_t i = 0; i < rules->len; i++) {
            m.unseen_by = NULL;
            if (hits[rules->items[i].kind](&m, rules->items[i].text))
                out->items[out->len++] = (struct approval_hit){ i, m.unseen_by != NULL };
        }
    }
    command_reading_clear (&m.reading);
}

void
approval_hits_clear (struct approval_hits *h)
{
    free (h->items);
    *h = (struct approval_hits){ 0 };
}
