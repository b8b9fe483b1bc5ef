/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/formation/formation_retire.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "home/running.h"
#include "spawn/formation/formation.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MARKER_BYTES_MAX ((size_t)64 << 10)

struct retiring {
    const struct formation *formation;
    int dir_fd;                  /* ~/.murmur/formations */
    struct running_scan running; /* what may be a member of one */
    bool is_running_known;
};

/* A formation's directory that is this project's; its marker in *marker (owned). */
static bool
is_ours (const struct retiring *r, const char *id, json_t **marker)
{
    int fd = openat (r->dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_ (fs_root_freep) struct fs_root *root = fs_root_new (fd, id, NULL, false);
    if (! fs_read (root, "formation.json", MARKER_BYTES_MAX, &text, NULL))
        return false;
    *marker = json_loadb (text.data ? text.data : "", text.len, 0, NULL);
    if (str_eq (json_get_string (*marker, "project_dir"), r->formation->plan->project_dir))
        return true;
    json_decref (*marker);
    *marker = NULL;
    return false;
}

/* Whatever cannot be told counts as alive. */
static bool
may_live (const struct retiring *r, const char *id, const json_t *marker)
{
    uint64_t pid;
    const char *start = json_get_string (marker, "launcher_start");
    if (! r->is_running_known || ! json_get_u64 (marker, "launcher_pid", &pid) || ! start)
        return true;
    if (running_check ((pid_t)pid, start, NULL) != RUNNING_GONE)
        return true;
    for (size_t i = 0; i < r->running.len; i++)
        if (r->running.entries[i].liveness != RUNNING_GONE &&
            str_eq (r->running.entries[i].record.formation_id, id))
            return true;
    return false;
}

/* The folders of its peers, and the records that mirror them. */
static bool
remove_formation (const struct retiring *r, const char *id)
{
    if (! fs_remove_tree_at (r->dir_fd, id, NULL))
        return false;
    _cleanup_free_ char *formations = home_path_below ("formations", NULL);
    _cleanup_free_ char *below = formations ? x_asprintf ("records%s", formations) : NULL;
    _cleanup_close_ int group = below ? home_find_dir (below, NULL) : -1;
    if (group >= 0)
        (void)fs_remove_tree_at (group, id, NULL);
    return true;
}

static void
list_ids (const struct retiring *r, struct strv *ids)
{
    int copy = fcntl (r->dir_fd, F_DUPFD_CLOEXEC, 3);
    _cleanup_closedir_ DIR *d = copy >= 0 ? fdopendir (copy) : NULL;
    if (! d && copy >= 0)
        close (copy);
    for (const struct dirent *e; d && (e = readdir (d));)
        if (id_is_valid (e->d_name, "frm_"))
            strv_push (ids, e->d_name);
    strv_sort (ids);
}

static bool
is_older_than (const char *id, uint64_t age_secs)
{
    uint64_t then_ms = id_time_ms (id), now_ms = clock_unix_ms ();
    return age_secs && now_ms > then_ms && (now_ms - then_ms) / 1000 >= age_secs;
}

static void
retire_all (const struct retiring *r, const struct retain *retain)
{
    _cleanup_strv_ struct strv ids = { 0 };
    const char *current = r->formation->id.text;
    uint64_t rank = 0;
    list_ids (r, &ids);
    for (size_t i = ids.len; i-- > 0;) { /* newest first */
        const char *id = ids.items[i];
        _cleanup_json_ json_t *marker = NULL;
        if (! is_ours (r, id, &marker))
            continue;
        rank++;
        const char *reason = is_older_than (id, retain->max_age_secs)        ? "max_age"
                             : retain->max_count && rank > retain->max_count ? "max_sessions"
                                                                             : NULL;
        if (! reason || strcmp (id, current) >= 0 || may_live (r, id, marker))
            continue;
        if (remove_formation (r, id))
            diag_stderr_line ("removed formation %s: %s", id, reason);
    }
}

void
formation_retire (const struct formation *f, const struct capsule_manifest *entry)
{
    const struct retain *retain = entry->trace ? entry->trace->retain : NULL;
    if (! retain)
        return;
    struct retiring r = { .formation = f, .dir_fd = home_find_dir ("formations", NULL) };
    if (r.dir_fd < 0)
        return;
    r.is_running_known = running_scan (false, &r.running, NULL);
    retire_all (&r, retain);
    running_scan_free (&r.running);
    close (r.dir_fd);
}
