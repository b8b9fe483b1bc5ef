/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/server_source.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "cli/mcp/run_program.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/capsule/endpoint.h"
#include "manifest/text/grammar.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_FILE_MAX ((size_t)256 << 20)
#define JSON_MAX        ((size_t)64 << 20)

/* --- names --- */

/* "filesystem" of "@modelcontextprotocol/server-filesystem", "time" of "mcp-server-time". Owned. */
static char *
name_of (const char *package)
{
    static const char *const beginnings[] = { "mcp-server-", "server-", "mcp-" };
    static const char *const ends[] = { "-mcp-server", "-mcp", "-server" };
    const char *slash = strrchr (package, '/');
    char *name = x_strdup (slash ? slash + 1 : package);
    str_lower (name);
    for (char *c = name; *c; c++)
        if (! isalnum ((unsigned char)*c))
            *c = '-';
    for (size_t i = 0; i < ARRAY_LEN (beginnings); i++)
        if (str_starts (name, beginnings[i]) && name[strlen (beginnings[i])]) {
            memmove (name, name + strlen (beginnings[i]),
                     strlen (name) - strlen (beginnings[i]) + 1);
            break;
        }
    for (size_t i = 0; i < ARRAY_LEN (ends); i++)
        if (str_ends (name, ends[i]) && strlen (name) > strlen (ends[i])) {
            name[strlen (name) - strlen (ends[i])] = '\0';
            break;
        }
    /* "@playwright/mcp" is playwright. */
    if (str_eq (name, "mcp") && package[0] == '@' && slash) {
        free (name);
        name = x_strndup (package + 1, (size_t)(slash - package) - 1);
    }
    return name;
}

/* "name" and "1.0" of "name@1.0"; a leading @ is a scope. */
static void
split_version (const char *text, char **name, char **version)
{
    const char *at = strrchr (text, '@');
    bool has_version = at && at != text && at[1];
    *name = has_version ? x_strndup (text, (size_t)(at - text)) : x_strdup (text);
    *version = has_version ? x_strdup (at + 1) : NULL;
}

static json_t *
read_json (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_regular (path, JSON_MAX, &text, err))
        return NULL;
    return json_parse (text.data ? text.data : "", text.len, path, E_IO_003, err);
}

/* Where servers run from anyway: a temporary folder of the host is hidden in their walls. */
static bool
make_dir (struct server_source *s, struct mur_error **err)
{
    _cleanup_close_ int trees = home_open_dir ("mcp", err);
    s->dir = trees < 0 ? NULL : home_path_below ("mcp/.fetch-XXXXXX", err);
    if (! s->dir)
        return false;
    if (! mkdtemp (s->dir)) {
        mur_fail_errno (err, E_IO_003, "cannot make a folder like %s", s->dir);
        free (steal_ptr (&s->dir));
        return false;
    }
    _cleanup_free_ char *tree = x_asprintf ("%s/tree", s->dir);
    if (mkdir (tree, 0755) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create %s", tree);
    s->tree = realpath (tree, NULL);
    return s->tree != NULL;
}

/* --- npm --- */

/* The program of a package.json: the only one, the one of the package's own name, or <wanted>. */
static const char *
pick_bin (const json_t *package, const char *wanted, struct mur_error **err)
{
    const json_t *bin = json_object_get (package, "bin");
    const char *name = json_get_string (package, "name"), *main = json_get_string (package, "main");
    const char *bare = name && strrchr (name, '/') ? strrchr (name, '/') + 1 : name;
    if (json_is_string (bin) && ! wanted)
        return json_string_value (bin);
    if (json_object_size (bin) == 1 && ! wanted)
        return json_string_value (
            json_object_iter_value (json_object_iter ((json_t *)(uintptr_t)bin)));
    const char *picked = json_get_string (bin, wanted ? wanted : bare ? bare : "");
    if (! picked && ! json_object_size (bin) && ! wanted)
        picked = main;
    if (picked)
        return picked;
    _cleanup_strv_ struct strv names = { 0 };
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)bin, key, value) strv_push (&names, key);
    _cleanup_free_ char *all = strv_join (&names, ", ");
    mur_fail (err, E_MCP_001, "%s has no program%s%s%s%s", name ? name : "the package",
              wanted ? " " : "", wanted ? wanted : "", names.len ? "; it has " : "", all);
    if (names.len)
        mur_hint (err, "name one of them with --bin");
    return NULL;
}

static bool
is_listed (const char *const *items, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (items[i], name) == 0)
            return true;
    return false;
}

/* Packages that wanted to run something of their own, by the lock npm wrote. */
static bool
judge_scripts (const struct source_request *q, struct server_source *s, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/package-lock.json", s->tree);
    _cleanup_json_ json_t *lock = read_json (path, err);
    const char *at;
    json_t *entry;
    if (! lock)
        return false;
    json_object_foreach (json_object_get (lock, "packages"), at, entry)
    {
        const char *name = strstr (at, "node_modules/");
        if (! name || ! json_is_true (json_object_get (entry, "hasInstallScript")))
            continue;
        for (const char *next; (next = strstr (name + 1, "node_modules/"));)
            name = next;
        name += strlen ("node_modules/");
        if (! is_listed (q->scripted, q->scripted_count, name)) {
            strv_printf (&s->notes,
                         "%s has an install script, which was not run; --allow-scripts %s runs it",
                         name, name);
            continue;
        }
        const char *const argv[] = { "npm", "rebuild", "--no-bin-links", "--ignore-scripts=false",
                                     name,  NULL };
        if (! run_program (argv, s->tree, err))
            return false;
        strv_printf (&s->notes, "the install script of %s was run", name);
    }
    return true;
}

static bool
fetch_npm (const struct source_request *q, const char *what, struct server_source *s,
           struct mur_error **err)
{
    static const char empty[] = "{\"name\":\"packed-server\",\"private\":true}\n";
    _cleanup_free_ char *name = NULL, *version = NULL;
    _cleanup_free_ char *own = x_asprintf ("%s/package.json", s->tree);
    const char *const argv[] = { "npm",
                                 "install",
                                 "--ignore-scripts",
                                 "--no-audit",
                                 "--no-fund",
                                 "--no-bin-links",
                                 "--omit=dev",
                                 "--save-exact",
                                 "--",
                                 what,
                                 NULL };
    if (! fs_replace_path (own, empty, strlen (empty), 0644, false, err) ||
        ! run_program (argv, s->tree, err) || ! judge_scripts (q, s, err))
        return false;
    split_version (what, &name, &version);
    _cleanup_free_ char *path = x_asprintf ("%s/node_modules/%s/package.json", s->tree, name);
    _cleanup_json_ json_t *package = read_json (path, err);
    const char *bin = package ? pick_bin (package, q->bin, err) : NULL;
    if (! bin)
        return false;
    while (str_starts (bin, "./"))
        bin += 2;
    s->interpreter = x_strdup ("node");
    s->entry = x_asprintf ("node_modules/%s/%s", name, bin);
    s->name = name_of (name);
    s->version = x_strdup (json_get_string (package, "version"));
    s->source = x_asprintf ("npm:%s@%s", name, s->version);
    return true;
}

/* --- PyPI --- */

/* Dashes, dots and underscores are one in the name of a distribution. */
static char *
normal_name (const char *name)
{
    char *normal = x_strdup (name), *to = normal;
    for (const char *c = name; *c; c++) {
        bool is_dash = *c == '-' || *c == '_' || *c == '.';
        if (! is_dash || (to > normal && to[-1] != '-'))
            *to++ = is_dash ? '-' : (char)tolower ((unsigned char)*c);
    }
    *to = '\0';
    return normal;
}

/* The module and function a console script calls: "mcp_server_time:main". */
static char *
pick_console_script (const char *text, const char *wanted)
{
    _cleanup_free_ char *copy = x_strdup (text), *only = NULL;
    char *rest = copy;
    bool is_in = false;
    size_t count = 0;
    for (char *line; (line = strsep (&rest, "\n"));) {
        if (line[0] == '[')
            is_in = str_starts (line, "[console_scripts]");
        char *equals = is_in ? strchr (line, '=') : NULL;
        if (! equals)
            continue;
        *equals = '\0';
        char *name = line + strspn (line, " \t"), *value = equals + 1 + strspn (equals + 1, " \t");
        name[strcspn (name, " \t")] = '\0';
        value[strcspn (value, " \t\r[")] = '\0';
        if (strcmp (name, wanted) == 0)
            return x_strdup (value);
        free (only);
        only = x_strdup (value);
        count++;
    }
    return count == 1 ? steal_ptr (&only) : NULL;
}

static char *
read_entry_points (const struct server_source *s, const char *name)
{
    _cleanup_free_ char *site = x_asprintf ("%s/site", s->tree);
    _cleanup_free_ char *wanted = normal_name (name);
    _cleanup_closedir_ DIR *dir = opendir (site);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        const char *dash = strrchr (e->d_name, '-');
        if (! str_ends (e->d_name, ".dist-info"))
            continue;
        for (const char *at = e->d_name; (at = strchr (at, '-')); at++)
            if (isdigit ((unsigned char)at[1])) {
                dash = at;
                break;
            }
        _cleanup_free_ char *own = x_strndup (e->d_name, (size_t)(dash - e->d_name));
        _cleanup_free_ char *normal = normal_name (own);
        if (strcmp (normal, wanted) != 0)
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s/%s/entry_points.txt", site, e->d_name);
        _cleanup_buf_ struct buf text = { 0 };
        return fs_read_regular (path, 1 << 20, &text, NULL) ? buf_steal (&text) : x_strdup ("");
    }
    return x_strdup ("");
}

/* What starts a console script of the tree, wherever the tree lies. */
static bool
write_python_start (const struct server_source *s, const char *target, const char *name,
                    struct mur_error **err)
{
    const char *colon = strchr (target, ':');
    _cleanup_free_ char *module =
        colon ? x_strndup (target, (size_t)(colon - target)) : x_strdup (target);
    _cleanup_free_ char *path = x_asprintf ("%s/run.py", s->tree);
    _cleanup_free_ char *text =
        x_asprintf ("import importlib, os, site, sys\n"
                    "here = os.path.join(os.path.dirname(os.path.abspath(__file__)), \"site\")\n"
                    "site.addsitedir(here)\n"
                    "sys.path.remove(here) if here in sys.path else None\n"
                    "sys.path.insert(0, here)\n"
                    "sys.argv[0] = \"%s\"\n"
                    "target = importlib.import_module(\"%s\")\n"
                    "for part in \"%s\".split(\".\"):\n"
                    "    target = getattr(target, part)\n"
                    "sys.exit(target())\n",
                    name, module, colon ? colon + 1 : "main");
    return fs_replace_path (path, text, strlen (text), 0644, false, err);
}

/* What was installed, by digest; and which requirements could have been anything. */
static bool
judge_report (struct server_source *s, const char *name, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/report.json", s->dir);
    _cleanup_free_ char *to = x_asprintf ("%s/lock.json", s->tree);
    _cleanup_free_ char *wanted = normal_name (name);
    _cleanup_json_ json_t *report = read_json (path, err), *lock = json_array ();
    size_t i, k;
    json_t *one, *requirement;
    if (! report)
        return false;
    json_array_foreach (json_object_get (report, "install"), i, one)
    {
        const json_t *about = json_object_get (one, "metadata");
        json_t *from = json_object_get (one, "download_info");
        const char *its = json_get_string (about, "name");
        _cleanup_free_ char *normal = normal_name (its ? its : "");
        json_array_append_new (
            lock, json_pack ("{s:s?, s:s?, s:O?, s:O?}", "name", its, "version",
                             json_get_string (about, "version"), "url",
                             json_object_get (from, "url"), "hashes",
                             json_object_get (json_object_get (from, "archive_info"), "hashes")));
        if (strcmp (normal, wanted) != 0)
            continue;
        free (s->version);
        s->version = x_strdup (json_get_string (about, "version"));
        json_array_foreach (json_object_get (about, "requires_dist"), k, requirement)
        {
            const char *text = json_string_value (requirement);
            if (text && ! strstr (text, "extra ==") && ! strstr (text, "<") &&
                ! strstr (text, "==") && ! strstr (text, "~="))
                strv_printf (&s->notes, "%s asks for %s, which has no upper bound", name, text);
        }
    }
    _cleanup_free_ char *text = json_pretty (lock, JSON_TEXT_ORDERED);
    return fs_replace_path (to, text, strlen (text), 0644, false, err) &&
           (s->version ||
            mur_fail (err, E_IO_003, "pip did not say which version of %s it took", name));
}

static bool
install_python (const struct source_request *q, const char *name, const char *version,
                struct server_source *s, struct mur_error **err)
{
    _cleanup_free_ char *site = x_asprintf ("%s/site", s->tree);
    _cleanup_free_ char *report = x_asprintf ("%s/report.json", s->dir);
    _cleanup_free_ char *wanted = version ? x_asprintf ("%s==%s", name, version) : x_strdup (name);
    _cleanup_strv_ struct strv argv = { 0 };
    static const char *const beginning[] = { "python3",      "-m",
                                             "pip",          "install",
                                             "--quiet",      "--disable-pip-version-check",
                                             "--no-compile", "--only-binary",
                                             ":all:" };
    for (size_t i = 0; i < ARRAY_LEN (beginning); i++)
        strv_push (&argv, beginning[i]);
    for (size_t i = 0; i < q->scripted_count; i++) {
        strv_push (&argv, "--no-binary");
        strv_push (&argv, q->scripted[i]);
        strv_printf (&s->notes, "the build script of %s was run", q->scripted[i]);
    }
    strv_push (&argv, "--target");
    strv_push (&argv, site);
    strv_push (&argv, "--report");
    strv_push (&argv, report);
    strv_push (&argv, wanted);
    for (size_t i = 0; i < q->also_count; i++)
        strv_push (&argv, q->also[i]);
    if (run_program ((const char *const *)argv.items, s->tree, err))
        return true;
    return mur_hint (err, "a package without a wheel needs its build script: --allow-scripts NAME");
}

/* Compiled once for good: the tree is read only where it runs. */
static bool
compile_python (const struct server_source *s, struct mur_error **err)
{
    const char *const argv[] = {
        "python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "site", NULL
    };
    (void)run_program (argv, s->tree, NULL); /* some packages bring files of other versions */
    (void)err;
    return true;
}

static bool
fetch_pypi (const struct source_request *q, const char *what, struct server_source *s,
            struct mur_error **err)
{
    _cleanup_free_ char *name = NULL, *version = NULL;
    split_version (what, &name, &version);
    if (! install_python (q, name, version, s, err) || ! judge_report (s, name, err) ||
        ! compile_python (s, err))
        return false;
    const char *wanted = q->bin ? q->bin : name;
    _cleanup_free_ char *points = read_entry_points (s, name);
    _cleanup_free_ char *target = pick_console_script (points, wanted);
    if (! target) {
        mur_fail (err, E_MCP_001, "%s has no program %s", name, wanted);
        return mur_hint (err, "name one of its console scripts with --bin");
    }
    s->interpreter = x_strdup ("python3");
    s->entry = x_strdup ("run.py");
    strv_push (&s->flags, "-B");
    strv_push (&s->flags, "-s");
    s->name = name_of (name);
    s->source = x_asprintf ("pypi:%s@%s", name, s->version);
    return write_python_start (s, target, name, err);
}

/* --- a folder --- */

static bool
is_file_in (const char *dir, const char *name)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    struct stat st;
    return stat (path, &st) == 0 && S_ISREG (st.st_mode);
}

static bool
find_start (struct server_source *s, const char *dir, const char *wanted, struct mur_error **err)
{
    static const char *const files[][2] = { { "server.py", "python3" }, { "main.py", "python3" },
                                            { "server.js", "node" },    { "index.js", "node" },
                                            { "server.mjs", "node" },   { "index.mjs", "node" } };
    _cleanup_free_ char *path = x_asprintf ("%s/package.json", dir);
    _cleanup_json_ json_t *package =
        is_file_in (dir, "package.json") ? read_json (path, err) : NULL;
    const char *found = NULL, *by = NULL;
    if (package) {
        const char *version = json_get_string (package, "version");
        s->version = version ? x_strdup (version) : NULL;
        found = pick_bin (package, wanted && ! is_file_in (dir, wanted) ? wanted : NULL, NULL);
        by = "node";
    }
    if (wanted && is_file_in (dir, wanted)) {
        found = wanted;
        by = str_ends (wanted, ".py") ? "python3" : str_ends (wanted, ".sh") ? "sh" : "node";
    }
    for (size_t i = 0; i < ARRAY_LEN (files) && ! found; i++)
        if (is_file_in (dir, files[i][0])) {
            found = files[i][0];
            by = files[i][1];
        }
    if (! found) {
        mur_fail (err, E_MCP_001, "nothing in %s can be started as a server", dir);
        return mur_hint (err,
                         "name its file with --bin: server.py, or the main file of a package.json");
    }
    while (str_starts (found, "./"))
        found += 2;
    s->entry = x_strdup (found);
    s->interpreter = x_strdup (by);
    if (strcmp (by, "python3") == 0) {
        strv_push (&s->flags, "-B");
        strv_push (&s->flags, "-s");
    }
    return true;
}

static bool
copy_file (const char *from, const char *to, struct mur_error **err)
{
    _cleanup_buf_ struct buf data = { 0 };
    return fs_read_regular (from, FOLDER_FILE_MAX, &data, err) &&
           fs_replace_path (to, data.data ? data.data : "", data.len, 0644, false, err);
}

/* What is packed is what is looked at: files alone, and nothing that is the person's own. */
static bool
copy_folder (const char *from, struct server_source *s, struct mur_error **err)
{
    char *const roots[] = { (char *)(uintptr_t)from, NULL };
    FTS *walk = fts_open (roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    size_t left_out = 0;
    bool is_good = walk || mur_fail_errno (err, E_IO_003, "cannot read %s", from);
    for (FTSENT *e; is_good && (e = fts_read (walk));) {
        _cleanup_free_ char *to = x_asprintf ("%s%s", s->tree, e->fts_path + strlen (from));
        bool is_own = str_eq (e->fts_name, ".git") || str_eq (e->fts_name, ".env");
        if (is_own && e->fts_level > 0)
            fts_set (walk, e, FTS_SKIP);
        else if (e->fts_info == FTS_D)
            is_good = mkdir (to, 0755) == 0 || errno == EEXIST ||
                      mur_fail_errno (err, E_IO_003, "cannot create %s", to);
        else if (e->fts_info == FTS_F)
            is_good = copy_file (e->fts_path, to, err);
        else if (e->fts_info != FTS_DP)
            left_out++;
    }
    if (walk)
        fts_close (walk);
    if (left_out)
        strv_printf (&s->notes, "%zu links and other files that are none are left out", left_out);
    return is_good;
}

static bool
fetch_path (const struct source_request *q, const char *what, struct server_source *s,
            struct mur_error **err)
{
    _cleanup_free_ char *from = realpath (what, NULL);
    struct stat st;
    if (! from || stat (from, &st) < 0 || ! S_ISDIR (st.st_mode))
        return mur_fail_errno (err, E_IO_001, "no folder %s", what);
    s->name = name_of (from);
    s->source = x_asprintf ("path:%s", strrchr (from, '/') + 1);
    if (! copy_folder (from, s, err))
        return false;
    if (! find_start (s, s->tree, q->bin, err))
        return false;
    if (! s->version)
        s->version = x_strdup ("0.1.0");
    return true;
}

/* --- far away --- */

/* "docs" of "mcp.docs.example.com" and "docs.example.com": the first word of its host that says
 * something. */
static char *
name_of_host (const char *host)
{
    static const char *const empty[] = { "mcp", "api", "www" };
    for (const char *at = host;;) {
        size_t len = strcspn (at, "."), i = 0;
        while (i < ARRAY_LEN (empty) &&
               ! (strlen (empty[i]) == len && strncmp (at, empty[i], len) == 0))
            i++;
        if (i == ARRAY_LEN (empty) && ! isdigit ((unsigned char)*at) && *at != '[')
            return x_strndup (at, len);
        if (! at[len])
            return x_strdup ("remote");
        at += len + 1;
    }
}

/* A key in an address would be packed, shown and logged. */
static bool
check_query (const char *url, struct mur_error **err)
{
    const char *at = strchr (url, '?');
    while (at && *++at) {
        size_t len = strcspn (at, "=&");
        _cleanup_free_ char *name = x_strndup (at, len);
        for (char *c = name; *c; c++)
            *c = isalnum ((unsigned char)*c) ? (char)toupper ((unsigned char)*c) : '_';
        if (env_name_is_credential_shaped (name) || strstr (name, "APIKEY")) {
            mur_fail (err, E_MCP_009, "the address holds a key (%.*s), and an address is packed",
                      (int)len, at);
            return mur_hint (err, "leave it out, and name the variable that holds it: --key-env");
        }
        at = strchr (at, '&');
    }
    return true;
}

static bool
take_url (const struct source_request *q, struct server_source *s, struct mur_error **err)
{
    _cleanup_ (arena_freep) struct arena *arena = arena_new ();
    const char *bare = arena_strndup (arena, q->source, strcspn (q->source, "?"));
    const char *why;
    struct endpoint e;
    if (q->bin || q->also_count || q->scripted_count)
        return mur_fail (err, E_IO_003,
                         "--bin, --with and --allow-scripts are for packages; %s is far away",
                         q->source);
    if (! endpoint_parse (arena, bare, &e, &why))
        return mur_fail (err, E_IO_003, "'%s' is refused: %s", endpoint_masked (arena, bare), why);
    if (! check_query (q->source, err) || ! make_dir (s, err))
        return false;
    s->url = x_strdup (q->source);
    s->source = x_strdup (q->source);
    s->name = name_of_host (e.host);
    s->version = x_strdup ("1");
    return true;
}

/* --- the whole --- */

bool
server_source_fetch (const struct source_request *q, struct server_source *out,
                     struct mur_error **err)
{
    static const struct {
        const char *scheme;
        bool (*fetch) (const struct source_request *, const char *, struct server_source *,
                       struct mur_error **);
    } kinds[] = { { "npm:", fetch_npm }, { "pypi:", fetch_pypi }, { "path:", fetch_path } };
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++) {
        const char *what = q->source + strlen (kinds[i].scheme);
        if (! str_starts (q->source, kinds[i].scheme) || ! *what || *what == '-')
            continue;
        return make_dir (out, err) && kinds[i].fetch (q, what, out, err);
    }
    if (str_starts (q->source, "https://") || str_starts (q->source, "http://"))
        return take_url (q, out, err);
    mur_fail (err, E_IO_003, "%s is no source of a server", q->source);
    return mur_hint (err, "npm:NAME@VERSION, pypi:NAME@VERSION, path:FOLDER or https://HOST/PATH");
}

void
server_source_clear (struct server_source *s)
{
    if (s->dir)
        (void)fs_remove_tree_at (AT_FDCWD, s->dir, NULL);
    free (s->dir);
    free (s->tree);
    free (s->url);
    free (s->name);
    free (s->version);
    free (s->source);
    free (s->interpreter);
    free (s->entry);
    strv_free (&s->flags);
    strv_free (&s->notes);
}
