/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/refusals.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/programs/hopeless.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum trouble {
    TROUBLE_NONE,
    TROUBLE_DENIED,
    TROUBLE_ABSENT,
    TROUBLE_READ_ONLY,
    TROUBLE_NETWORK,
    TROUBLE_MEMORY,
};

static const struct {
    const char *words;
    enum trouble trouble;
} marks[] = {
    { "permission denied", TROUBLE_DENIED },
    { "eacces", TROUBLE_DENIED },
    { "permissionerror", TROUBLE_DENIED },
    { "operation not permitted", TROUBLE_DENIED },
    { "eperm", TROUBLE_DENIED },
    { "read-only file system", TROUBLE_READ_ONLY },
    { "erofs", TROUBLE_READ_ONLY },
    { "no such file or directory", TROUBLE_ABSENT },
    { "enoent", TROUBLE_ABSENT },
    { "could not resolve", TROUBLE_NETWORK },
    { "name resolution", TROUBLE_NETWORK },
    { "name or service not known", TROUBLE_NETWORK },
    { "unable to resolve", TROUBLE_NETWORK },
    { "no such host", TROUBLE_NETWORK },
    { "enotfound", TROUBLE_NETWORK },
    { "eai_again", TROUBLE_NETWORK },
    { "unreachable", TROUBLE_NETWORK },
    { "connection refused", TROUBLE_NETWORK },
    { "econnrefused", TROUBLE_NETWORK },
    { "failed to connect", TROUBLE_NETWORK },
    { "server misbehaving", TROUBLE_NETWORK },
    { "cannot allocate memory", TROUBLE_MEMORY },
    { "out of memory", TROUBLE_MEMORY },
    { "memoryerror", TROUBLE_MEMORY },
    { "bad_alloc", TROUBLE_MEMORY },
    { "memory exhausted", TROUBLE_MEMORY },
    { "enomem", TROUBLE_MEMORY },
    { "could not reserve enough space", TROUBLE_MEMORY },
    { "failed to reserve", TROUBLE_MEMORY },
};

/* Calls no key grants, by the word a program says of them. */
static const char *const calls[] = {
    "unshare", "setns",    "mount",  "ptrace",          "chroot",      "pivot_root", "bpf",
    "keyctl",  "io_uring", "reboot", "perf_event_open", "userfaultfd", "mknod"
};

static enum trouble
trouble_of (const char *line)
{
    for (size_t i = 0; i < ARRAY_LEN (marks); i++)
        if (strcasestr (line, marks[i].words))
            return marks[i].trouble;
    return TROUBLE_NONE;
}

void
refusals_say (struct strv *out, char *line)
{
    bool is_new = out->len < REFUSALS_MAX && ! strv_contains (out, line);
    if (is_new)
        strv_push (out, line);
    free (line);
}

/* --- files --- */

static bool
is_below (const char *path, const char *const *roots)
{
    for (size_t i = 0; roots && roots[i]; i++)
        if (fs_path_is_within (path, roots[i]))
            return true;
    return false;
}

static bool
is_session_folder (const struct refusal_walls *w, const char *path)
{
    const char *const own[] = { w->work_dir, w->home_dir, w->temp_dir, NULL };
    return is_below (path, own);
}

static bool
is_runnable_file (const char *path)
{
    struct stat st;
    return stat (path, &st) == 0 && S_ISREG (st.st_mode) && (st.st_mode & 0111);
}

static void
judge_session_path (const struct refusal_walls *w, const char *path, bool was_started,
                    struct strv *out)
{
    for (size_t i = 0; w->read_only && w->read_only[i]; i++) {
        _cleanup_free_ char *root = x_asprintf ("%s/%s", w->work_dir, w->read_only[i]);
        if (fs_path_is_within (path, root)) {
            refusals_say (out, x_asprintf ("%s may not be changed (filesystem.read_only)", path));
            return;
        }
    }
    if (was_started && ! w->may_run_work && is_runnable_file (path))
        refusals_say (out, x_asprintf ("%s is a file of the work, which do not run here "
                                       "(filesystem.workdir_exec: walled lets them)",
                                       path));
}

static void
judge_path (const struct refusal_walls *w, const char *path, enum trouble trouble, bool was_started,
            struct strv *out)
{
    char resolved[PATH_MAX];
    struct stat st;
    if (lstat (path, &st) < 0 || ! realpath (path, resolved))
        return;
    if (is_session_folder (w, resolved)) {
        judge_session_path (w, resolved, was_started || trouble == TROUBLE_DENIED, out);
        return;
    }
    const char *base = strrchr (path, '/') + 1;
    if (is_below (resolved, w->programs))
        return;
    if (is_runnable_file (resolved) && trouble != TROUBLE_READ_ONLY)
        refusals_say (
            out, x_asprintf ("%s is no program of this capsule (shell.allow: [%s])", path, base));
    else if (! is_below (resolved, w->readable) &&
             (trouble != TROUBLE_ABSENT || w->is_sealed || fs_path_is_within (path, "/tmp")))
        refusals_say (
            out,
            x_asprintf ("%s lies outside what commands may read; what the work needs is put into "
                        "the work folder, a program's own folder into shell.interpreter_runtime",
                        path));
}

/* A bare name that PATH finds and the capsule does not. */
static void
judge_name (const struct refusal_walls *w, const char *name, struct strv *out)
{
    _cleanup_free_ char *dirs = x_strdup (w->path ? w->path : "");
    char *rest = dirs;
    for (char *dir; (dir = strsep (&rest, ":"));) {
        char resolved[PATH_MAX];
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s", dir, name);
        if (dir[0] != '/' || ! is_runnable_file (candidate) || ! realpath (candidate, resolved))
            continue;
        if (is_session_folder (w, resolved))
            judge_session_path (w, resolved, true, out);
        else if (! is_below (resolved, w->programs))
            refusals_say (out, x_asprintf ("%s is no program of this capsule (shell.allow: [%s])",
                                           candidate, name));
        return;
    }
}

/* --- words of a line --- */

static bool
ends_word (char c)
{
    return ! c || isspace ((unsigned char)c) || strchr ("'\"`,;:()[]{}<>|=", c) ||
           (unsigned char)c >= 0x80;
}

static bool
is_host (const char *word)
{
    const char *dot = strrchr (word, '.');
    size_t labels = 0;
    for (const char *p = word; *p; p++) {
        if (! isalnum ((unsigned char)*p) && *p != '.' && *p != '-')
            return false;
        labels += *p == '.';
    }
    struct stat st;
    bool is_address = labels == 3 && strspn (word, "0123456789.") == strlen (word);
    bool is_name = dot && dot != word && strlen (dot) > 2 && isalpha ((unsigned char)dot[1]) &&
                   ! str_eq (dot, ".localhost") && lstat (word, &st) < 0;
    return is_address ? ! str_starts (word, "127.") : is_name;
}

/* A name without a folder is meant as a program or file only beside the words of the refusal. */
static bool
is_named (const char *line, const char *at, size_t len)
{
    const char *after = at + len;
    after += *after == '\'' || *after == '"';
    const char *before = at > line ? at - 1 : at;
    while (before > line && strchr ("'\" ", *before))
        before--;
    static const char denied[] = "permission denied:", spawned[] = "spawn";
    bool follows = before - line >= (ptrdiff_t)strlen (denied) - 1 &&
                   strncasecmp (before + 1 - strlen (denied), denied, strlen (denied)) == 0;
    bool is_spawned = before - line >= (ptrdiff_t)strlen (spawned) - 1 &&
                      strncasecmp (before + 1 - strlen (spawned), spawned, strlen (spawned)) == 0;
    return strncasecmp (after, ": permission denied", strlen (": permission denied")) == 0 ||
           strncasecmp (after, ": operation not permitted", strlen (": operation not permitted")) ==
               0 ||
           strncasecmp (after, ": read-only", strlen (": read-only")) == 0 || follows || is_spawned;
}

static void
judge_word (const struct refusal_walls *w, const char *word, enum trouble trouble, bool was_started,
            bool is_meant, struct strv *out)
{
    if (trouble == TROUBLE_NETWORK) {
        if (is_host (word) && ! w->reaches (w->ctx, word))
            refusals_say (out, x_asprintf ("%s is no host of this capsule (network.allow: [%s])",
                                           word, word));
    } else if (word[0] == '/') {
        judge_path (w, word, trouble, was_started, out);
    } else if (strchr (word, '/')) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", w->work_dir, word);
        judge_path (w, path, trouble, was_started, out);
    } else if (is_meant && (trouble == TROUBLE_DENIED || trouble == TROUBLE_READ_ONLY)) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", w->work_dir, word);
        struct stat st;
        if (lstat (path, &st) == 0)
            judge_path (w, path, trouble, was_started, out);
        else
            judge_name (w, word, out);
    }
}

static void
judge_line (const struct refusal_walls *w, char *line, bool was_started, struct strv *out)
{
    enum trouble trouble = trouble_of (line);
    if (trouble == TROUBLE_NONE)
        return;
    if (trouble == TROUBLE_MEMORY && w->memory_bytes)
        refusals_say (out, x_asprintf ("one process may not have more than %llu bytes of addresses "
                                       "(resources.memory_bytes: a larger number)",
                                       (unsigned long long)w->memory_bytes));
    if (trouble == TROUBLE_DENIED && strcasestr (line, "socket") && ! w->allows_unix_sockets)
        refusals_say (
            out,
            x_strdup ("sockets of another kind than IP are not given (network.unix_sockets: true "
                      "lets a command bind its own)"));
    for (char *at = line; *at;) {
        size_t len = 0;
        while (! ends_word (at[len]))
            len++;
        if (len > 1 && len < PATH_MAX) {
            char kept = at[len];
            bool is_meant = is_named (line, at, len);
            at[len] = '\0';
            judge_word (w, at, trouble, was_started, is_meant, out);
            for (size_t i = 0; i < ARRAY_LEN (calls) && trouble == TROUBLE_DENIED; i++)
                if (str_eq (at, calls[i]))
                    refusals_say (
                        out, x_asprintf (
                                 "the system call %s is refused to every command; no key grants it",
                                 calls[i]));
            at[len] = kept;
        }
        at += len + (at[len] != '\0');
    }
}

void
refusals_find (const struct refusal_walls *w, int exit_code, const char *text, size_t len,
               struct strv *out)
{
    _cleanup_free_ char *copy = x_strndup (text ? text : "", text ? len : 0);
    char *rest = copy;
    /* 126 is a shell's word for a file that was found and could not be started. */
    bool was_started = exit_code == 126;
    for (char *line; out->len < REFUSALS_MAX && (line = strsep (&rest, "\n"));)
        judge_line (w, line, was_started, out);
}

/* --- what the command says itself --- */

/* Words a shell knows without any file. */
static const char *const builtins[] = {
    "alias", "bg",     "break", "case",  "cd",     "command",  "continue", "declare", "do",
    "done",  "echo",   "elif",  "else",  "esac",   "eval",     "exec",     "exit",    "export",
    "false", "fc",     "fg",    "fi",    "for",    "function", "getopts",  "hash",    "if",
    "in",    "jobs",   "kill",  "let",   "local",  "popd",     "printf",   "pushd",   "pwd",
    "read",  "return", "set",   "shift", "shopt",  "source",   "test",     "then",    "time",
    "times", "trap",   "true",  "type",  "ulimit", "umask",    "unalias",  "unset",   "until",
    "wait",  "while",  "{",     "}",     "!",      "[",        "[[",       ":",       "."
};

/* Words after which another command begins. */
static const char *const openers[] = { "if",      "then", "else",  "elif", "while", "until", "do",
                                       "!",       "{",    "time",  "exec", "nohup", "env",   "nice",
                                       "command", "eval", "xargs", "sudo", "setsid" };

static bool
is_one_of (const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq (list[i], word))
            return true;
    return false;
}

/* Whether its complaint begins with the program's name, as programs do. */
static bool
complains (const char *complaint, const char *program)
{
    const char *slash = strrchr (program, '/');
    const char *name = slash ? slash + 1 : program;
    size_t len = strlen (name);
    for (const char *at = complaint; (at = strstr (at, name)); at += len)
        if ((at == complaint || ! isalnum ((unsigned char)at[-1])) && at[len] == ':')
            return true;
    return false;
}

static void
judge_command (const struct refusal_walls *w, const char *word, const char *complaint,
               bool has_failed, bool is_silent, struct strv *out)
{
    const char *why = hopeless_why (word);
    if (why && (has_failed || complains (complaint, word)))
        refusals_say (out, x_asprintf ("%s cannot do its work here: %s", word, why));
    else if (! why && is_silent && ! strchr (word, '/') &&
             ! is_one_of (word, builtins, ARRAY_LEN (builtins)))
        judge_name (w, word, out);
}

/* Places every command has something at, whatever the walls are. */
static bool
is_judged (const char *word)
{
    return word[0] == '/' && ! str_starts (word, "/dev/") && ! str_starts (word, "/proc") &&
           ! str_starts (word, "/sys");
}

/* A word, from which *at goes on to what ends it. */
static char *
next_word (const char **at)
{
    static const char ends[] = " \t\n;|&()<>`";
    const char *from = *at;
    char quote = 0;
    for (; **at && (quote || ! strchr (ends, **at)); (*at)++)
        if (quote ? **at == quote : **at == '\'' || **at == '"')
            quote = quote ? 0 : **at;
    size_t len = (size_t)(*at - from);
    bool is_quoted = len > 1 && (*from == '\'' || *from == '"') && from[len - 1] == *from;
    return is_quoted ? x_strndup (from + 1, len - 2) : x_strndup (from, len);
}

void
refusals_of_line (const struct refusal_walls *w, const char *line, const char *complaint,
                  bool has_failed, struct strv *out)
{
    bool begins = true, is_silent = has_failed && ! *complaint;
    for (const char *at = line; *at && out->len < REFUSALS_MAX;) {
        if (strchr (";|&(\n`", *at)) {
            begins = true;
            at++;
            continue;
        }
        if (strchr (" \t)<>", *at)) {
            at++;
            continue;
        }
        _cleanup_free_ char *word = next_word (&at);
        bool is_setting = strchr (word, '=') && word[0] != '/';
        if (begins && ! is_setting)
            judge_command (w, word, complaint, has_failed, is_silent, out);
        if (is_silent && is_judged (word))
            judge_path (w, word, TROUBLE_DENIED, false, out);
        begins = begins && (is_setting || is_one_of (word, openers, ARRAY_LEN (openers)));
    }
}
