/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/shims.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_MAX 8192

/* Managers with one folder of versions: <root>/shims/NAME starts <root>/versions/V/bin/NAME. */
static const struct {
    const char *mark;     /* what its scripts call */
    const char *variable; /* names the version before any file does */
    const char *file;     /* a project's choice */
} managers[] = {
    { "pyenv", "PYENV_VERSION", ".python-version" }, { "rbenv", "RBENV_VERSION", ".ruby-version" },
    { "nodenv", "NODENV_VERSION", ".node-version" }, { "goenv", "GOENV_VERSION", ".go-version" },
    { "plenv", "PLENV_VERSION", ".perl-version" },   { "phpenv", "PHPENV_VERSION", ".php-version" },
    { "jenv", "JENV_VERSION", ".java-version" },
};

static char *
read_head (const char *path)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC);
    char text[HEAD_MAX + 1];
    ssize_t n = fd < 0 ? -1 : read (fd, text, HEAD_MAX);
    if (n < 0 || memchr (text, '\0', (size_t)n))
        return NULL;
    return x_strndup (text, (size_t)n);
}

/* The first word of the file that is no comment; NULL when there is none. */
static char *
first_word (const char *dir, const char *file)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, file);
    _cleanup_free_ char *text = read_head (path);
    char *rest = text;
    for (char *line; rest && (line = strsep (&rest, "\n"));) {
        line += strspn (line, " \t");
        size_t len = strcspn (line, " \t\r:#");
        if (len)
            return x_strndup (line, len);
    }
    return NULL;
}

/* A project's choice, sought upwards from the work folder. */
static char *
chosen_upwards (const char *work_dir, const char *file)
{
    _cleanup_free_ char *dir = work_dir ? x_strdup (work_dir) : NULL;
    while (dir && *dir) {
        char *word = first_word (dir, file);
        if (word)
            return word;
        *strrchr (dir, '/') = '\0';
    }
    return NULL;
}

static bool
is_runnable (const char *path)
{
    struct stat st;
    return stat (path, &st) == 0 && S_ISREG (st.st_mode) && access (path, X_OK) == 0;
}

/* The newest match of a pattern, NULL for none. */
static char *
newest (const char *pattern)
{
    glob_t found = { 0 };
    char *best = NULL;
    if (glob (pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (is_runnable (found.gl_pathv[i]) &&
                (! best || strverscmp (found.gl_pathv[i], best) > 0)) {
                free (best);
                best = x_strdup (found.gl_pathv[i]);
            }
    globfree (&found);
    return best;
}

/* "3.11" names the newest 3.11.x, as the managers read it. */
static char *
in_versions (const char *root, const char *version, const char *name)
{
    char *path = x_asprintf ("%s/versions/%s/bin/%s", root, version, name);
    if (is_runnable (path))
        return path;
    free (path);
    _cleanup_free_ char *pattern = x_asprintf ("%s/versions/%s.*/bin/%s", root, version, name);
    return newest (pattern);
}

static enum shim_kind
resolve_managed (size_t m, const char *name, const char *root, const char *work_dir, char **real,
                 char **why)
{
    const char *given = getenv (managers[m].variable);
    _cleanup_free_ char *version = given && *given ? x_strndup (given, strcspn (given, ":")) : NULL;
    if (! version)
        version = chosen_upwards (work_dir, managers[m].file);
    if (! version)
        version = first_word (root, "version");
    if (! version || str_eq (version, "system"))
        return SHIM_PASSED;
    if ((*real = in_versions (root, version, name)))
        return SHIM_RESOLVED;
    *why =
        x_asprintf ("%s is a script of %s, whose chosen version %s has no %s: install it with `%s "
                    "install %s`, or choose another one",
                    name, managers[m].mark, version, name, managers[m].mark, version);
    return SHIM_LOST;
}

/* asdf: the script lists "# asdf-plugin: PLUGIN VERSION"; the last that is installed counts, unless
 * the project's .tool-versions chooses. */
static enum shim_kind
resolve_asdf (const char *name, const char *text, const char *root, const char *work_dir,
              char **real, char **why)
{
    static const char mark[] = "# asdf-plugin: ";
    _cleanup_free_ char *chosen_path = work_dir ? x_asprintf ("%s/.tool-versions", work_dir) : NULL;
    _cleanup_free_ char *chosen = chosen_path ? read_head (chosen_path) : NULL;
    for (const char *at = text; (at = strstr (at, mark)); at++) {
        char plugin[64], version[64];
        if (sscanf (at + strlen (mark), "%63s %63s", plugin, version) != 2)
            continue;
        char *path = x_asprintf ("%s/installs/%s/%s/bin/%s", root, plugin, version, name);
        _cleanup_free_ char *pair = x_asprintf ("%s %s", plugin, version);
        if (! is_runnable (path)) {
            free (path);
            continue;
        }
        free (*real);
        *real = path;
        if (chosen && strstr (chosen, pair))
            break;
    }
    if (*real)
        return SHIM_RESOLVED;
    *why =
        x_asprintf ("%s is a script of asdf, and no version of it is installed below %s/installs: "
                    "`asdf install`",
                    name, root);
    return SHIM_LOST;
}

static char *
parent_of (const char *path, unsigned levels)
{
    char *parent = x_strdup (path);
    while (levels--) {
        char *slash = strrchr (parent, '/');
        if (slash)
            *slash = '\0';
    }
    return parent;
}

/* rustup's home: named, beside the proxies' folder, or in the person's home. */
static char *
rustup_toolchain (const char *candidate, const char *name)
{
    const char *named = getenv ("RUSTUP_HOME"), *home = getenv ("HOME");
    const struct passwd *user = getpwuid (getuid ());
    _cleanup_free_ char *above = parent_of (candidate, 3);
    _cleanup_free_ char *places[] = { x_strdup (named ? named : ""),
                                      x_asprintf ("%s/.rustup", above),
                                      x_asprintf ("%s/.rustup", home ? home : ""),
                                      x_asprintf ("%s/.rustup", user ? user->pw_dir : "") };
    char *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        _cleanup_free_ char *settings_path = x_asprintf ("%s/settings.toml", places[i]);
        _cleanup_free_ char *settings = found ? NULL : read_head (settings_path);
        const char *at = settings ? strstr (settings, "default_toolchain") : NULL;
        const char *given = getenv ("RUSTUP_TOOLCHAIN");
        char toolchain[128] = "";
        if (given && *given)
            snprintf (toolchain, sizeof toolchain, "%s", given);
        else if (at)
            (void)sscanf (at, "default_toolchain = \"%127[^\"]", toolchain);
        _cleanup_free_ char *pattern =
            x_asprintf ("%s/toolchains/%s*/bin/%s", places[i], toolchain, name);
        if (! found && places[i][0])
            found = newest (pattern);
        if (i)
            free (places[i]);
    }
    return found;
}

/* Links to the manager's own program: its name tells which. */
static enum shim_kind
resolve_link (const char *name, const char *candidate, char **real, char **why)
{
    char target[PATH_MAX];
    if (! realpath (candidate, target))
        return SHIM_NONE;
    const char *base = strrchr (target, '/') + 1;
    bool is_rustup = str_starts (base, "rustup") && ! str_starts (name, "rustup");
    bool is_mise = str_eq (base, "mise") && ! str_eq (name, "mise");
    bool is_volta = str_starts (base, "volta") && ! str_starts (name, "volta");
    if (! is_rustup && ! is_mise && ! is_volta)
        return SHIM_NONE;
    _cleanup_free_ char *root = parent_of (candidate, 2);
    _cleanup_free_ char *pattern = is_mise ? x_asprintf ("%s/installs/*/*/bin/%s", root, name)
                                           : x_asprintf ("%s/tools/image/*/*/bin/%s", root, name);
    *real = is_rustup ? rustup_toolchain (candidate, name) : newest (pattern);
    if (*real)
        return SHIM_RESOLVED;
    *why = x_asprintf ("%s is a link to %s, and no version of it is installed", name, base);
    return SHIM_LOST;
}

/* A script of one command that starts another file: exec /path/to/it "$@". Owned, NULL: it is not.
 */
static char *
wrapped_program (const char *text)
{
    static const char exec[] = "exec ", arguments[] = "\"$@\"";
    _cleanup_free_ char *found = NULL;
    _cleanup_free_ char *copy = x_strdup (text);
    char *rest = copy;
    for (char *line; (line = strsep (&rest, "\n"));) {
        line += strspn (line, " \t");
        if (! *line || *line == '#')
            continue;
        if (found || ! str_starts (line, exec))
            return NULL;
        line += strlen (exec);
        line += *line == '"';
        size_t len = strcspn (line, "\" ");
        const char *tail = line + len + (line[len] == '"');
        tail += strspn (tail, " ");
        if (line[0] != '/' || ! str_eq (tail, arguments))
            return NULL;
        found = x_strndup (line, len);
    }
    return steal_ptr (&found);
}

enum shim_kind
shim_resolve (const char *name, const char *candidate, const char *work_dir, char **real,
              char **why)
{
    *real = *why = NULL;
    enum shim_kind kind = resolve_link (name, candidate, real, why);
    if (kind != SHIM_NONE)
        return kind;
    _cleanup_free_ char *text = read_head (candidate);
    if (! text || ! str_starts (text, "#!"))
        return SHIM_NONE;
    _cleanup_free_ char *root = parent_of (candidate, 2);
    _cleanup_free_ char *dir = parent_of (candidate, 1);
    bool is_in_shims = str_eq (strrchr (dir, '/') ? strrchr (dir, '/') : "", "/shims");
    for (size_t m = 0; is_in_shims && m < ARRAY_LEN (managers); m++)
        if (strstr (text, managers[m].mark))
            return resolve_managed (m, name, root, work_dir, real, why);
    if (is_in_shims && strstr (text, "asdf"))
        return resolve_asdf (name, text, root, work_dir, real, why);
    /* A wrapper of the system's stays: what it starts may look for its parts by the path that it is
     * started with (p7zip), and comes along as what any script starts. */
    _cleanup_free_ char *wrapped = str_starts (candidate, "/usr/") ? NULL : wrapped_program (text);
    if (! wrapped || ! is_runnable (wrapped))
        return SHIM_NONE;
    *real = steal_ptr (&wrapped);
    return SHIM_RESOLVED;
}
