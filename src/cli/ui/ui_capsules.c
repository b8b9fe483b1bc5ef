/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_capsules.h"

#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "cli/ui/ui_groups.h"
#include "fs/paths.h"
#include "manifest/capsule/capsule.h"
#include "manifest/settings/artifact_manifest.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_BYTES ((size_t)1 << 20)
#define MOST_CAPSULES  300
#define MOST_ENTRIES   2000 /* of the folder around: more is no folder of capsules */

/* --- one folder --- */

/* A manifest that says it is something else than a capsule. */
static bool
is_another_artifact (const char *text, size_t len)
{
    _cleanup_error_ struct mur_error *ignored = NULL;
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_parse (text, len, "murmur.yaml", &ignored);
    return m && ! str_eq (m->runtime, "capsule");
}

static void
judge (struct ui_capsule *c)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_parse (c->text, c->len, "murmur.yaml", MANIFEST_SECRETLESS, &err);
    if (! m) {
        c->why_not = x_strdup (err->message);
        return;
    }
    c->name = x_strdup (m->name);
    c->version = x_strdup (m->version);
    if (m->inference && m->inference->model)
        c->model = x_strdup (m->inference->model);
    if (! m->inference)
        c->why_not = x_strdup ("it is a script: it has no inference: block and takes no task");
}

/* What somebody else put beside this user's own things is offered once it was run before. */
static bool
is_of_somebody_else (const struct stat *st)
{
    return st->st_uid != geteuid () && st->st_uid != 0;
}

static void
add_folder (struct ui_capsules *all, const char *folder, bool was_run)
{
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", folder);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *ignored = NULL;
    struct stat st;
    if (lstat (path, &st) < 0 || ! S_ISREG (st.st_mode) || all->len >= MOST_CAPSULES ||
        (! was_run && is_of_somebody_else (&st)))
        return;
    _cleanup_free_ char *id = x_asprintf ("folder:%s", folder);
    if (! utf8_is_valid (folder, strlen (folder)) || ui_capsules_find (all, id))
        return;
    bool is_read = fs_read_regular (path, MANIFEST_BYTES, &text, &ignored);
    if (is_read && is_another_artifact (text.data ? text.data : "", text.len))
        return;
    x_grow (all->items, all->len, all->cap);
    struct ui_capsule *c = &all->items[all->len++];
    *c = (struct ui_capsule){ .id = steal_ptr (&id), .folder = x_strdup (folder) };
    if (! is_read) {
        c->why_not = x_strdup (ignored->message);
        return;
    }
    char digest[SHA256_HEX_LEN + 1];
    c->len = text.len;
    sha256_hex (text.data ? text.data : "", text.len, digest);
    c->seen = x_strdup (digest);
    c->text = buf_steal (&text);
    judge (c);
}

/* --- which folders --- */

static void
add_around (struct ui_capsules *all, const char *folder)
{
    add_folder (all, folder, false);
    DIR *dir = opendir (folder);
    const struct dirent *entry;
    for (size_t seen = 0; dir && seen < MOST_ENTRIES && (entry = readdir (dir)); seen++) {
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        _cleanup_free_ char *below =
            x_asprintf ("%s/%s", str_eq (folder, "/") ? "" : folder, entry->d_name);
        add_folder (all, below, false);
    }
    if (dir)
        closedir (dir);
}

/* Sessions work in workdir/ of the folder of their manifest, unless they were told another. */
static void
add_work_root (struct ui_capsules *all, const char *work_root)
{
    static const char usual[] = "/workdir";
    add_folder (all, work_root, true);
    if (str_ends (work_root, usual) && work_root[sizeof usual - 1]) {
        _cleanup_free_ char *around = x_strndup (work_root, strlen (work_root) + 1 - sizeof usual);
        add_folder (all, around, true);
    }
}

static bool
add_recorded (struct ui_capsules *all, const char *only, struct mur_error **err)
{
    struct ui_groups g = { 0 };
    bool is_ok = ui_groups_read (&g, only, err);
    for (size_t i = 0; is_ok && i < g.len; i++)
        add_work_root (all, g.items[i].work_root);
    ui_groups_clear (&g);
    return is_ok;
}

/* --- installed ones --- */

static bool
add_installed (struct ui_capsules *all, const char *folder, struct mur_error **err)
{
    _cleanup_free_ char *root = project_root_find (folder);
    _cleanup_stores_ struct stores *stores = stores_new (root, err);
    _cleanup_rows_ struct store_rows rows = { 0 };
    if (! stores)
        return false;
    for (int kind = 0; kind < STORE_COUNT; kind++)
        if (! store_list (&stores->at[kind], &rows, err))
            return false;
    for (size_t i = 0; i < rows.len && all->len < MOST_CAPSULES; i++) {
        const struct store_row *row = &rows.items[i];
        _cleanup_free_ char *id = x_asprintf ("store:%s@%s", row->name, row->version);
        if (! str_eq (row->role, "capsule") || ui_capsules_find (all, id))
            continue;
        x_grow (all->items, all->len, all->cap);
        all->items[all->len++] = (struct ui_capsule){ .id = x_strdup (id),
                                                      .folder = x_strdup (folder),
                                                      .name = x_strdup (row->name),
                                                      .version = x_strdup (row->version),
                                                      .seen = steal_ptr (&id) };
    }
    return true;
}

/* --- outside --- */

bool
ui_capsules_read (const char *workdir, struct ui_capsules *c, struct mur_error **err)
{
    _cleanup_free_ char *here = fs_canonical_path (workdir ? workdir : ".", err);
    if (! here)
        return false;
    add_around (c, here);
    if (workdir)
        add_work_root (c, here);
    return add_recorded (c, workdir ? here : NULL, err) && add_installed (c, here, err);
}

const struct ui_capsule *
ui_capsules_find (const struct ui_capsules *c, const char *id)
{
    for (size_t i = 0; i < c->len; i++)
        if (str_eq (c->items[i].id, id))
            return &c->items[i];
    return NULL;
}

json_t *
ui_capsules_json (const struct ui_capsules *c)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < c->len; i++) {
        const struct ui_capsule *one = &c->items[i];
        json_t *o = json_object ();
        json_set_string (o, "id", one->id);
        json_set_string (o, "folder", one->folder);
        json_set_bool (o, "is_installed", ! one->text && ! one->why_not);
        json_set_string (o, "name", one->name);
        json_set_string (o, "version", one->version);
        json_set_string (o, "model", one->model);
        json_set_string (o, "seen", one->seen);
        json_set_string (o, "why_not", one->why_not);
        json_array_append_new (list, o);
    }
    return list;
}

void
ui_capsules_clear (struct ui_capsules *c)
{
    for (size_t i = 0; i < c->len; i++) {
        char *const texts[] = { c->items[i].id,      c->items[i].folder, c->items[i].name,
                                c->items[i].version, c->items[i].model,  c->items[i].text,
                                c->items[i].seen,    c->items[i].why_not };
        for (size_t k = 0; k < ARRAY_LEN (texts); k++)
            free (texts[k]);
    }
    free (c->items);
    *c = (struct ui_capsules){ 0 };
}
