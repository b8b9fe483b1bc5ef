/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/eval_run.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "home/paths.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_LIMIT (64 * 1024 * 1024)
#define SUFFIX     ".json"

/* --- addresses --- */

static int
newest_first (const void *a, const void *b)
{
    return strcmp (*(char *const *)b, *(char *const *)a);
}

/* Ids of the records in a group, newest first. */
static bool
list_runs (int group_fd, struct strv *ids)
{
    int copy = openat (group_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir)
        return false;
    for (struct dirent *e; (e = readdir (dir));) {
        size_t len = strlen (e->d_name);
        if (len < sizeof (SUFFIX) || ! str_ends (e->d_name, SUFFIX))
            continue;
        _cleanup_free_ char *id = x_strndup (e->d_name, len - strlen (SUFFIX));
        if (id_is_valid (id, "evr_"))
            strv_push (ids, id);
    }
    if (ids->len)
        qsort (ids->items, ids->len, sizeof (*ids->items), newest_first);
    return true;
}

static const char *
pick (const struct strv *ids, const char *address, const char *group, struct mur_error **err)
{
    if (! ids->len) {
        mur_fail (err, E_EVAL_002, "no eval runs are recorded in %s", group);
        return NULL;
    }
    if (address[0] == '@') {
        char *end;
        unsigned long n = isdigit ((unsigned char)address[1]) ? strtoul (address + 1, &end, 10) : 0;
        if (n && ! *end && n <= ids->len)
            return ids->items[n - 1];
        mur_fail (err, E_EVAL_002, "%s names none of the %zu eval run%s in %s", address, ids->len,
                  ids->len == 1 ? "" : "s", group);
        return NULL;
    }
    _cleanup_free_ char *suffix = x_strdup (address);
    _cleanup_buf_ struct buf matches = { 0 };
    const char *found = NULL;
    size_t count = 0;
    str_lower (suffix);
    for (size_t i = 0; i < ids->len; i++)
        if (str_ends (ids->items[i], suffix)) {
            found = ids->items[i];
            buf_printf (&matches, "\n  %s", found);
            count++;
        }
    if (count == 1)
        return found;
    if (count)
        mur_fail (err, E_EVAL_002, "\"%s\" matches %zu eval runs:%s", address, count, matches.data);
    else
        mur_fail (err, E_EVAL_002, "no eval run in %s matches \"%s\"", group, address);
    return NULL;
}

char *
eval_run_resolve (const char *address, const char *work_root, struct mur_error **err)
{
    if (strchr (address, '/') || str_ends (address, SUFFIX))
        return x_strdup (address);
    struct mur_error *caught = NULL;
    _cleanup_free_ char *group = home_records_group (work_root, err);
    if (! group)
        return NULL;
    _cleanup_close_ int fd = home_find_records_group (work_root, &caught);
    if (caught)
        return mur_propagate (err, caught), NULL;
    _cleanup_strv_ struct strv ids = { 0 };
    if (fd >= 0 && ! list_runs (fd, &ids))
        return mur_fail_errno (err, E_IO_003, "cannot list %s", group), NULL;
    const char *id = pick (&ids, address, group, err);
    return id ? x_asprintf ("%s/%s" SUFFIX, group, id) : NULL;
}

/* --- reading --- */

static bool
are_runs (const json_t *runs)
{
    size_t i;
    const json_t *run;
    if (! json_is_array (runs))
        return false;
    json_array_foreach (runs, i, run)
    {
        if (! json_get_string (run, "arm") || ! json_is_integer (json_object_get (run, "repeat")))
            return false;
    }
    return true;
}

static bool
is_record (const json_t *run)
{
    const json_t *arms = json_object_get (run, "arms"), *cases = json_object_get (run, "cases");
    const json_t *item;
    size_t i;
    uint64_t repeat;
    if (! json_get_string (run, "run_id") || ! json_is_array (arms) || ! json_is_array (cases) ||
        ! json_is_boolean (json_object_get (run, "complete")) ||
        ! json_get_u64 (run, "repeat", &repeat))
        return false;
    json_array_foreach (arms, i, item)
    {
        if (! json_get_string (item, "name"))
            return false;
    }
    json_array_foreach (cases, i, item)
    {
        if (! json_get_string (item, "case_id") || ! are_runs (json_object_get (item, "runs")))
            return false;
    }
    return true;
}

json_t *
eval_run_read (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return mur_fail (err, E_IO_001, "there is no record of an eval run at %s", path), NULL;
    if (fd < 0 || ! fd_read_all (fd, FILE_LIMIT, &text))
        return mur_fail_errno (err, E_IO_003, "cannot read %s", path), NULL;
    json_error_t where;
    json_t *run = json_loadb (text.data ? text.data : "", text.len, 0, &where);
    if (is_record (run))
        return run;
    mur_fail (err, E_EVAL_001, "%s:%d: this is no record of an eval run", path,
              run              ? 1
              : where.line > 0 ? where.line
                               : 1);
    json_decref (run);
    return NULL;
}
