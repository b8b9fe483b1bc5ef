/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/server_source.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "cli/mcp/source_internal.h"
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
#include <unistd.h>

#define FOLDER_VERSION  "0.1.0"
#define FOLDER_FILE_MAX ((size_t)256 << 20)

/* --- its folder --- */

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
        is_file_in (dir, "package.json") ? source_read_json (path, err) : NULL;
    const char *found = NULL, *by = NULL;
    if (package) {
        const char *version = json_get_string (package, "version");
        s->version = version ? x_strdup (version) : NULL;
        found =
            source_pick_bin (package, wanted && ! is_file_in (dir, wanted) ? wanted : NULL, NULL);
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
        mur_fail (err, E_MCP_001, "nothing in the folder can be started as a server");
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
is_same_folder (const FTSENT *e, const struct stat *st)
{
    return e->fts_info == FTS_D && e->fts_statp->st_dev == st->st_dev &&
           e->fts_statp->st_ino == st->st_ino;
}

static bool
copy_folder (const char *from, struct server_source *s, struct mur_error **err)
{
    char *const roots[] = { (char *)(uintptr_t)from, NULL };
    FTS *walk = fts_open (roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    size_t left_out = 0;
    struct stat here = { 0 }; /* where it is copied to may lie in it */
    bool is_good = (walk && stat (s->dir, &here) == 0) ||
                   mur_fail_errno (err, E_IO_003, "cannot read %s", from);
    for (FTSENT *e; is_good && (e = fts_read (walk));) {
        _cleanup_free_ char *to = x_asprintf ("%s%s", s->tree, e->fts_path + strlen (from));
        bool is_own = str_eq (e->fts_name, ".git") || str_eq (e->fts_name, ".env") ||
                      is_same_folder (e, &here);
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
        strv_printf (&s->notes, "left out, as links or no files: %zu", left_out);
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
    s->name = source_name_of (from);
    s->source = x_asprintf ("path:%s", strrchr (from, '/') + 1);
    if (! copy_folder (from, s, err))
        return false;
    if (! find_start (s, s->tree, q->bin, err))
        return false;
    if (! s->version && ! q->has_version)
        strv_printf (&s->notes, "the folder says no version of its own, so it is " FOLDER_VERSION
                                " (--version gives another)");
    if (! s->version)
        s->version = x_strdup (FOLDER_VERSION);
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
    } kinds[] = { { "npm:", source_fetch_npm },
                  { "pypi:", source_fetch_pypi },
                  { "path:", fetch_path } };
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++) {
        const char *what = q->source + strlen (kinds[i].scheme);
        if (! str_starts (q->source, kinds[i].scheme) || ! *what || *what == '-')
            continue;
        return make_dir (out, err) && kinds[i].fetch (q, what, out, err);
    }
    if (str_starts (q->source, "https://") || str_starts (q->source, "http://"))
        return take_url (q, out, err);
    mur_fail (err, E_IO_003, "%s is no source of a server", q->source);
    bool is_folder = access (q->source, F_OK) == 0;
    if (is_folder || ! strchr (q->source, ':'))
        return mur_hint (err, "did you mean %s:%s?",
                         is_folder             ? "path"
                         : q->source[0] == '@' ? "npm"
                                               : "npm: or pypi",
                         q->source);
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
    free (s->wants);
    strv_free (&s->flags);
    strv_free (&s->notes);
}
