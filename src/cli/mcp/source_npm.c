/* SPDX-License-Identifier: Apache-2.0
 *
 * A server from npm: its package with everything it depends on, as npm installs it, without the
 * install scripts.
 */
#include "base/alloc.h"
#include "cli/mcp/known_failures.h"
#include "cli/mcp/run_program.h"
#include "cli/mcp/source_internal.h"
#include "fs/paths.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *
source_pick_bin (const json_t *package, const char *wanted, struct mur_error **err)
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
    else
        mur_hint (err, "it is a library: a server of tools is a package with a program (bin)");
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
    _cleanup_json_ json_t *lock = source_read_json (path, err);
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
        if (! run_program (argv, s->tree, err)) {
            explain_npm (err, name);
            return false;
        }
        strv_printf (&s->notes, "the install script of %s was run", name);
    }
    return true;
}

/* --- its engine --- */

/* The numbers of "v20.1.2", ">=22.19", "^20.3". */
static void
read_numbers (const char *text, unsigned out[2])
{
    text += strcspn (text, "0123456789");
    char *end;
    out[0] = (unsigned)strtoul (text, &end, 10);
    out[1] = *end == '.' ? (unsigned)strtoul (end + 1, NULL, 10) : 0;
}

/* A package that wants a newer node than this one often fails in words that say nothing of it. */
static void
judge_engine (const json_t *package, struct server_source *s)
{
    const char *wants = json_get_string (json_object_get (package, "engines"), "node");
    const char *const argv[] = { "node", "--version", NULL };
    _cleanup_buf_ struct buf out = { 0 };
    unsigned wanted[2], found[2];
    if (! wants || strstr (wants, "||") || wants[0] == '<' ||
        ! run_program_reading (argv, s->tree, &out, NULL) || ! out.data)
        return;
    out.data[strcspn (out.data, "\r\n")] = '\0';
    read_numbers (wants, wanted);
    read_numbers (out.data, found);
    if (found[0] > wanted[0] || (found[0] == wanted[0] && found[1] >= wanted[1]))
        return;
    s->wants = x_asprintf ("it wants node %s, and the one on PATH is %s: put a newer one first",
                           wants, out.data);
    strv_push (&s->notes, s->wants);
}

/* --- the whole --- */

static bool
install_npm (const struct source_request *q, const char *what, struct server_source *s,
             struct mur_error **err)
{
    static const char empty[] = "{\"name\":\"packed-server\",\"private\":true}\n";
    static const char *const beginning[] = { "npm",        "install",      "--ignore-scripts",
                                             "--no-audit", "--no-fund",    "--no-bin-links",
                                             "--omit=dev", "--save-exact", "--" };
    _cleanup_free_ char *own = x_asprintf ("%s/package.json", s->tree);
    _cleanup_strv_ struct strv argv = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (beginning); i++)
        strv_push (&argv, beginning[i]);
    strv_push (&argv, what);
    for (size_t i = 0; i < q->also_count; i++)
        strv_push (&argv, q->also[i]);
    if (! fs_replace_path (own, empty, strlen (empty), 0644, false, err))
        return false;
    if (run_program ((const char *const *)argv.items, s->tree, err))
        return true;
    explain_npm (err, what);
    return false;
}

bool
source_fetch_npm (const struct source_request *q, const char *what, struct server_source *s,
                  struct mur_error **err)
{
    _cleanup_free_ char *name = NULL, *version = NULL;
    source_split_version (what, &name, &version);
    if (! install_npm (q, what, s, err) || ! judge_scripts (q, s, err))
        return false;
    _cleanup_free_ char *path = x_asprintf ("%s/node_modules/%s/package.json", s->tree, name);
    _cleanup_json_ json_t *package = source_read_json (path, err);
    const char *bin = package ? source_pick_bin (package, q->bin, err) : NULL;
    if (! bin)
        return false;
    while (str_starts (bin, "./"))
        bin += 2;
    judge_engine (package, s);
    s->is_library = ! json_object_get (package, "bin");
    s->interpreter = x_strdup ("node");
    s->entry = x_asprintf ("node_modules/%s/%s", name, bin);
    s->name = source_name_of (name);
    s->version = x_strdup (json_get_string (package, "version"));
    s->source = x_asprintf ("npm:%s@%s", name, s->version);
    return true;
}
