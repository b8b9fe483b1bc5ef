/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/known_failures.h"

#include "base/alloc.h"
#include "cli/mcp/server_pack.h"

#include <ctype.h>
#include <string.h>

/* In place of *err; <hint> may be NULL. */
static void
replace (struct mur_error **err, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    mur_error_free (steal_ptr (err));
    mur_fail (err, E_IO_003, "%s", text);
    if (hint)
        mur_hint (err, "%s", hint);
}

/* --- npm --- */

#define BUILD_HINT                                                                                 \
    "it takes python3, make and a C++ compiler (apt: build-essential python3), or a version that " \
    "comes built for this machine"

static const struct known_failure {
    const char *mark, *sentence, *hint; /* the sentence goes on after the name */
} npm_failures[] = {
    { "code E404", "there is no such package on npm",
      "its name is what stands behind npx -y; pypi:NAME is one of PyPI" },
    { "code ETARGET", "npm has no such version of it", "npm view NAME versions lists them" },
    { "code ENOVERSIONS", "npm has no version of it any more",
      "its name is what stands behind npx -y" },
    { "code EUNSUPPORTEDPROTOCOL",
      "it depends on packages of the folder it was made in (workspace:), which nobody else has",
      "try an earlier version, or path: of a folder where it is built" },
    { "code EINVALIDPACKAGENAME", "that is no name of a package", NULL },
    { "code EINVALIDTAGNAME", "that is no version of a package", NULL },
    { "code ERESOLVE", "what it depends on contradicts itself",
      "try another version: npm view NAME versions" },
    { "code EBADPLATFORM", "it is not made for this system", NULL },
    { "code ENOSPC", "the disk is full", NULL },
    { "code ENOTFOUND", "the registry of npm cannot be reached", NULL },
    { "code EAI_AGAIN", "the registry of npm cannot be reached", NULL },
    { "code ECONNREFUSED", "the registry of npm cannot be reached", NULL },
    { "code ECONNRESET", "the registry of npm cannot be reached", NULL },
    { "code ETIMEDOUT", "the registry of npm cannot be reached", NULL },
    { "code ENETUNREACH", "the registry of npm cannot be reached", NULL },
    { "gyp ERR! find Python", "a part of it is built here, which needs python3", BUILD_HINT },
    { "not found: make", "a part of it is built here, which needs make", BUILD_HINT },
    { "gyp ERR!", "a part of it is built here, and that failed", BUILD_HINT },
    { "prebuild-install",
      "a part of it is fetched as it was built, and there is none for this node", BUILD_HINT },
};

void
explain_npm (struct mur_error **err, const char *what)
{
    for (size_t i = 0; err && *err && i < ARRAY_LEN (npm_failures); i++)
        if (strstr ((*err)->message, npm_failures[i].mark)) {
            replace (err, npm_failures[i].hint, "npm:%s: %s", what, npm_failures[i].sentence);
            return;
        }
}

/* --- pip --- */

/* Of "(from versions: 0.1, 0.2)" the last few; NULL: none. Owned. */
static char *
newest_versions (const char *list)
{
    size_t len = strcspn (list, ")\n"), from = len;
    for (unsigned commas = 0; from > 0 && commas < 5; from--)
        commas += list[from - 1] == ',';
    from += from > 0;
    while (list[from] == ' ' || list[from] == ',')
        from++;
    return len == 4 && memcmp (list, "none", 4) == 0 ? NULL : x_strndup (list + from, len - from);
}

static void
explain_versions (struct mur_error **err, const char *what, const char *at)
{
    static const char begin[] = "requirement ", versions[] = "(from versions: ";
    const char *message = (*err)->message, *named = strstr (at, begin);
    const char *list = strstr (at, versions);
    size_t len = named ? strcspn (named + strlen (begin), " \n") : 0;
    _cleanup_free_ char *name = x_strndup (named ? named + strlen (begin) : what, named ? len : 64);
    _cleanup_free_ char *newest = list ? newest_versions (list + strlen (versions)) : NULL;
    const char *python = strstr (message, "Requires-Python ");
    if (python) {
        python += strlen ("Requires-Python ");
        _cleanup_free_ char *wants = x_strndup (python, strcspn (python, ";\n"));
        replace (err, "a newer python3 that comes first on PATH is used",
                 "pypi:%s: %s is for another Python than python3 here: it wants %s", what, name,
                 wants);
    } else if (newest) {
        replace (err, NULL, "pypi:%s: there is no %s; the newest are %s", what, name, newest);
    } else {
        _cleanup_free_ char *hint = x_asprintf (
            "its name is what stands behind uvx; --allow-scripts %s builds it from its source",
            name);
        replace (err, hint,
                 "pypi:%s: PyPI has no package %s, or none that is built for this Python and "
                 "machine",
                 what, name);
    }
}

static void
explain_build (struct mur_error **err, const char *what, const char *named)
{
    _cleanup_free_ char *name = x_strndup (named, strcspn (named, " \n"));
    replace (err,
             "it takes a C compiler and the headers of python3 (apt: build-essential python3-dev), "
             "or a version that has a wheel for this Python and machine",
             "pypi:%s: %s is built here from its source, and that failed", what, name);
}

void
explain_pip (struct mur_error **err, const char *what)
{
    const char *message = err && *err ? (*err)->message : "", *at;
    if (strstr (message, "No module named pip"))
        replace (err, "install it: python3 -m ensurepip, or the package python3-pip",
                 "pypi:%s: python3 has no pip", what);
    else if (strstr (message, "connection broken by") || strstr (message, "Failed to establish") ||
             strstr (message, "Max retries exceeded") ||
             strstr (message, "Name or service not known"))
        replace (err, NULL, "pypi:%s: PyPI cannot be reached", what);
    else if ((at = strstr (message, "Could not find a version that satisfies")))
        explain_versions (err, what, at);
    else if ((at = strstr (message, "Failed building wheel for ")))
        explain_build (err, what, at + strlen ("Failed building wheel for "));
    else if (strstr (message, "ResolutionImpossible"))
        replace (err, "try another version, or narrow one of them with --with",
                 "pypi:%s: what it depends on contradicts itself", what);
    else if (strstr (message, "Invalid requirement"))
        replace (err, NULL, "pypi:%s: that is no name and version of a package", what);
}

/* --- a first look --- */

static bool
says_any (const char *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (strcasestr (text, words[i]))
            return true;
    return false;
}

/* The first name of a variable in a line that speaks of one. Owned; NULL: none. */
static char *
wanted_variable (const char *text)
{
    static const char *const near[] = { "environment", "env var", "variable", "set ",
                                        "required",    "missing", "provide",  NULL };
    for (const char *line = text, *next; *line; line = next) {
        size_t len = strcspn (line, "\n");
        next = line + len + (line[len] == '\n');
        _cleanup_free_ char *one = x_strndup (line, len);
        if (! says_any (one, near))
            continue;
        for (const char *at = one; *at;) {
            size_t word = strspn (at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
            bool is_alone = ! islower ((unsigned char)at[word]) &&
                            (at == one || ! isalnum ((unsigned char)at[-1]));
            if (word > 4 && is_alone && isupper ((unsigned char)*at) && memchr (at, '_', word) &&
                ! str_starts (at, "ERR_") && ! str_starts (at, "NODE_") &&
                ! str_starts (at, "MODULE_NOT"))
                return x_strndup (at, word);
            at += word ? word : 1;
        }
    }
    return NULL;
}

/* The word after <mark>, without quotes. Owned; NULL: it is not there. */
static char *
word_after (const char *text, const char *mark)
{
    const char *at = strstr (text, mark);
    if (! at)
        return NULL;
    at += strlen (mark);
    at += strspn (at, " '\"");
    size_t len = strcspn (at, " '\"\n");
    return len ? x_strndup (at, len) : NULL;
}

static bool
hint_module (struct mur_error **err, const char *wrote, const struct server_source *source)
{
    static const char *const native[] = { "bindings file",        "node-gyp", ".node'", "prebuild",
                                          "was compiled against", NULL };
    static const char *const marks[] = { "No module named", "Cannot find module",
                                         "Cannot find package" };
    for (size_t i = 0; i < source->notes.len; i++)
        if (says_any (wrote, native) && strstr (source->notes.items[i], "install script")) {
            mur_hint (err, "a part of it is built by an install script, which was not run: see "
                           "--allow-scripts above");
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN (marks); i++) {
        _cleanup_free_ char *name = word_after (wrote, marks[i]);
        if (name && name[0] != '/' && name[0] != '.') {
            mur_hint (err, "it does not say that it needs %s: --with %s adds it", name, name);
            return true;
        }
    }
    return false;
}

/* A program it starts, as Node, Python and GitPython say that it is not there. */
static bool
hint_program (struct mur_error **err, const char *wrote)
{
    static const char *const marks[] = { "Error: spawn ", "No such file or directory: '",
                                         "Permission denied: '", "initialize: Bad " };
    for (size_t i = 0; i < ARRAY_LEN (marks); i++) {
        _cleanup_free_ char *name = word_after (wrote, marks[i]);
        if (name && ! strpbrk (name, "/.")) {
            mur_hint (err, "it starts %s: --program %s lets it", name, name);
            return true;
        }
    }
    return false;
}

static const struct look_hint {
    const char *const words[9];
    const char *hint;
} look_hints[] = {
    { { "ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ENETUNREACH", "getaddrinfo", "fetch failed",
        "Name or service not known", "Temporary failure in name resolution", NULL },
      "it wants the network before it lists its tools: --network HOST opens one for the look" },
    { { "EACCES", "EROFS", "Read-only file system", "Permission denied", "PermissionError", NULL },
      "it wants a folder it does not have: --scope FOLDER is the one it works in, its home and "
      "temporary folder are new and its own" },
    { { "has no attribute", "cannot import name", "is not a function", "does not provide an export",
        NULL },
      "a newer version of what it depends on does not fit: --with NAME<VERSION holds it back" },
    { { "listening on", "server running on http", "Uvicorn running", NULL },
      "it speaks HTTP unless it is told otherwise: most such servers take --stdio, or the like, "
      "behind --" },
    { { "node --", "NODE_OPTIONS", "--experimental-", "--import ", "--max-old-space", NULL },
      "a flag of node goes into its environment: --env NODE_OPTIONS=--FLAG" },
    { { "usage", "argument", "unknown command", "--", "command-line", NULL },
      "what it is started with stands behind --: mur mcp add SOURCE -- ARGUMENTS" },
};

static const struct look_hint *
find_hint (const char *wrote)
{
    for (size_t i = 0; i < ARRAY_LEN (look_hints); i++)
        if (says_any (wrote, look_hints[i].words))
            return &look_hints[i];
    return NULL;
}

static bool
is_given (const struct server_start *start, const char *name)
{
    size_t len = strlen (name);
    for (size_t i = 0; i < start->env.len; i++)
        if (strncmp (start->env.items[i], name, len) == 0 && start->env.items[i][len] == '=')
            return true;
    return false;
}

void
explain_look (struct mur_error **err, const struct server_source *source,
              const struct server_start *start)
{
    static const char wrote_mark[] = "It wrote: ";
    if (! err || ! *err || (*err)->hint ||
        ((*err)->code != E_MCP_001 && (*err)->code != E_MCP_002 && (*err)->code != E_MCP_005))
        return;
    const char *at = strstr ((*err)->message, wrote_mark);
    _cleanup_free_ char *wrote = x_strdup (at ? at + strlen (wrote_mark) : "");
    _cleanup_free_ char *name = wanted_variable (wrote);
    const struct look_hint *known = find_hint (wrote);
    if (hint_module (err, wrote, source) || hint_program (err, wrote))
        return;
    if (source->url) {
        mur_hint (err, "does the server run, and is this the address it speaks MCP at (often its "
                       "path is /mcp)?");
        return;
    }
    if (source->wants)
        mur_hint (err, "%s", source->wants);
    else if (name && ! is_given (start, name))
        mur_hint (err,
                  "--env %s=placeholder is enough for a look; how a capsule gives it the real one: "
                  "docs/mcp.md, \"Its key\"",
                  name);
    else if (known)
        mur_hint (err, "%s", known->hint);
    else if (source->is_library)
        mur_hint (err,
                  "it has no program (bin), so its main file was run: is it a server of tools?");
    else if ((*err)->code == E_MCP_002)
        mur_hint (err, "it spoke no MCP on its standard streams: some want an argument for that "
                       "(behind --, such as --stdio), some a host first (--network)");
    else
        mur_hint (err, "is it a server of tools that speaks on its standard streams? What it is "
                       "started with stands behind --");
}
