/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_groups.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MOST_DEPTH   48
#define MOST_FOLDERS 4096 /* a tree of records beyond that is not walked on a page's behalf */

void
ui_groups_clear (struct ui_groups *g)
{
    for (size_t i = 0; i < g->len; i++) {
        free (g->items[i].work_root);
        free (g->items[i].path);
        strv_free (&g->items[i].names);
    }
    free (g->items);
    strv_free (&g->unreadable);
    *g = (struct ui_groups){ 0 };
}

static int
newest_first (const void *a, const void *b)
{
    return strcmp (*(char *const *)b, *(char *const *)a);
}

static void
add_group (struct ui_groups *g, const char *records, const char *below, struct strv *names)
{
    if (! names->len)
        return;
    qsort (names->items, names->len, sizeof *names->items, newest_first);
    x_grow (g->items, g->len, g->cap);
    g->items[g->len++] = (struct ui_group){ .work_root = x_strdup (*below ? below : "/"),
                                            .path = x_asprintf ("%s%s", records, below),
                                            .names = *names };
    *names = (struct strv){ 0 };
}

/* The folder <below> of the records ("" or "/a/b"), open as <fd>, which is taken over. Those that
 * lead further are added to <todo>. */
static void
read_folder (struct ui_groups *g, const char *records, const char *below, int fd, size_t depth,
             struct strv *todo)
{
    _cleanup_strv_ struct strv names = { 0 };
    DIR *dir = fdopendir (fd);
    if (! dir) {
        close (fd);
        return;
    }
    for (const struct dirent *e; (e = readdir (dir));) {
        if (e->d_name[0] == '.' && (! e->d_name[1] || str_eq (e->d_name, "..")))
            continue;
        if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN)
            continue;
        if (id_is_valid (e->d_name, "ses_"))
            strv_push (&names, e->d_name);
        else if (depth < MOST_DEPTH && todo->len < MOST_FOLDERS)
            strv_printf (todo, "%s/%s", below, e->d_name);
    }
    closedir (dir);
    add_group (g, records, below, &names);
}

static size_t
depth_of (const char *below)
{
    size_t depth = 0;
    for (; *below; below++)
        depth += *below == '/';
    return depth;
}

bool
ui_groups_read (struct ui_groups *g, const char *only, struct mur_error **err)
{
    _cleanup_free_ char *records = home_path_below ("records", err);
    _cleanup_strv_ struct strv todo = { 0 };
    if (! records)
        return false;
    strv_push (&todo, only ? only : "");
    for (size_t i = 0; i < todo.len; i++) {
        const char *below = todo.items[i];
        _cleanup_free_ char *path = x_asprintf ("%s%s", records, below);
        int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            _cleanup_free_ char *kept = x_strdup (below); /* todo grows below it */
            read_folder (g, records, kept, fd, only ? MOST_DEPTH : depth_of (kept), &todo);
        } else if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR) {
            strv_push (&g->unreadable, path);
        }
    }
    return true;
}
