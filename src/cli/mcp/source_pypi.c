/* SPDX-License-Identifier: Apache-2.0
 *
 * A server from PyPI: its wheels with everything they depend on, as pip takes them for this
 * machine, and what starts its console script from wherever they lie.
 */
#include "base/alloc.h"
#include "cli/mcp/known_failures.h"
#include "cli/mcp/run_program.h"
#include "cli/mcp/source_internal.h"
#include "fs/paths.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>

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

/* The console scripts of entry_points.txt. */
static void
list_console_scripts (const char *text, struct strv *out)
{
    _cleanup_free_ char *copy = x_strdup (text);
    char *rest = copy;
    bool is_in = false;
    for (char *line; (line = strsep (&rest, "\n"));) {
        if (line[0] == '[')
            is_in = str_starts (line, "[console_scripts]");
        size_t len = strcspn (line, " \t=");
        if (is_in && line[0] != '[' && strchr (line, '='))
            strv_take (out, x_strndup (line, len));
    }
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

/* "mcp-server-time" of "mcp_server_time-2026.10.19.dist-info". Owned. */
static char *
distribution_of (const char *dist_info)
{
    const char *dash = strrchr (dist_info, '-');
    for (const char *at = dist_info; (at = strchr (at, '-')); at++)
        if (isdigit ((unsigned char)at[1])) {
            dash = at;
            break;
        }
    _cleanup_free_ char *own = x_strndup (dist_info, (size_t)(dash - dist_info));
    return normal_name (own);
}

/* The entry points of one distribution, or of all. Owned. */
static char *
read_entry_points (const struct server_source *s, const char *name)
{
    _cleanup_free_ char *site = x_asprintf ("%s/site", s->tree);
    _cleanup_free_ char *wanted = name ? normal_name (name) : NULL;
    _cleanup_closedir_ DIR *dir = opendir (site);
    struct buf all = { 0 };
    for (struct dirent *e; dir && (e = readdir (dir));) {
        if (! str_ends (e->d_name, ".dist-info"))
            continue;
        _cleanup_free_ char *own = distribution_of (e->d_name);
        if (wanted && strcmp (own, wanted) != 0)
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s/%s/entry_points.txt", site, e->d_name);
        if (fs_read_regular (path, 1 << 20, &all, NULL))
            buf_puts (&all, "\n[]\n");
    }
    buf_puts (&all, "");
    return buf_steal (&all);
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
    _cleanup_json_ json_t *report = source_read_json (path, err), *lock = json_array ();
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
    explain_pip (err, wanted);
    return false;
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
fail_script (const char *points, const char *name, const char *wanted, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    list_console_scripts (points, &names);
    _cleanup_free_ char *all = strv_join (&names, ", ");
    mur_fail (err, E_MCP_001, "%s has no program %s%s%s", name, wanted,
              names.len ? "; it has " : ", nor any other", all);
    return mur_hint (err, names.len ? "name one of them with --bin"
                                    : "it is a library, or brings its program as another package");
}

bool
source_fetch_pypi (const struct source_request *q, const char *what, struct server_source *s,
                   struct mur_error **err)
{
    _cleanup_free_ char *name = NULL, *version = NULL;
    source_split_version (what, &name, &version);
    if (! install_python (q, name, version, s, err) || ! judge_report (s, name, err) ||
        ! compile_python (s, err))
        return false;
    const char *wanted = q->bin ? q->bin : name;
    _cleanup_free_ char *points = read_entry_points (s, name);
    _cleanup_free_ char *target = pick_console_script (points, wanted);
    _cleanup_free_ char *others = target ? NULL : read_entry_points (s, NULL);
    if (! target) /* some packages only bring another one with the program */
        target = pick_console_script (others, wanted);
    if (! target)
        return fail_script (points, name, wanted, err);
    s->interpreter = x_strdup ("python3");
    s->entry = x_strdup ("run.py");
    strv_push (&s->flags, "-B");
    strv_push (&s->flags, "-s");
    s->name = source_name_of (name);
    s->source = x_asprintf ("pypi:%s@%s", name, s->version);
    return write_python_start (s, target, name, err);
}
