/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/replay/eval_export.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "cli/replay/packing.h"
#include "fs/paths.h"
#include "replay/record/tape_read.h"
#include "replay/record/tree_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
put (const char *dir, const char *name, const char *text, size_t len, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    return fs_replace_path (path, text, len, 0644, false, err);
}

static bool
make_dir (const char *path, struct mur_error **err)
{
    for (const char *slash = strchr (path + 1, '/'); slash; slash = strchr (slash + 1, '/')) {
        _cleanup_free_ char *around = x_strndup (path, (size_t)(slash - path));
        if (mkdir (around, 0777) < 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot make %s", around);
    }
    if (mkdir (path, 0777) == 0)
        return true;
    mur_fail_errno (err, E_IO_003, "cannot make %s", path);
    return errno != EEXIST || mur_hint (err, "name a folder that is not there yet");
}

/* The files the task began with, where they are on record. */
static bool
put_start (const struct record *r, const char *dir, bool *has_start, struct mur_error **err)
{
    const struct rec_tree *tree = record_tree_before (r, 0, 0);
    *has_start = tree && ! tree->left_out;
    if (tree && tree->left_out)
        diag_plain_warning ("start/ is left away: files were left out of the record");
    if (! *has_start)
        return true;
    _cleanup_free_ char *path = x_asprintf ("%s/start", dir);
    if (! make_dir (path, err))
        return false;
    _cleanup_close_ int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && tree_restore (r, tree->sha, fd, err);
}

static bool
put_task (const struct record *r, const char *dir, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! r->task_count || ! r->tasks[0].text_sha) {
        mur_fail (err, E_RPL_001, "the record of %s holds no text of a task", r->session_id);
        return false;
    }
    if (r->task_count > 1)
        diag_plain_warning ("%s has %zu tasks: the case is the first", r->session_id,
                            r->task_count);
    return record_body (r, r->tasks[0].text_sha, &text, err) &&
           put (dir, "task.md", text.data ? text.data : "", text.len, err);
}

/* Paths of a data set are relative to where `mur eval run` is called: beside it. */
static bool
put_line (const struct record *r, const char *dir, bool has_start, const char *check,
          struct mur_error **err)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "case_id", r->session_id);
    json_set_string (o, "task_path", "task.md");
    if (has_start)
        json_set_string (o, "start", "start");
    if (check)
        json_set_string (o, "check", check);
    json_set_string (o, "record", "record.murtrace");
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_ORDERED);
    _cleanup_free_ char *line = x_asprintf ("%s\n", text);
    return put (dir, "eval.jsonl", line, strlen (line), err);
}

bool
eval_export (const struct record *r, const char *manifest, size_t manifest_len, const char *dir,
             const char *check, struct mur_error **err)
{
    bool has_start = false;
    _cleanup_free_ char *bundle = x_asprintf ("%s/record.murtrace", dir);
    if (! make_dir (dir, err) || ! put_task (r, dir, err) ||
        ! put_start (r, dir, &has_start, err) ||
        ! put (dir, "murmur.yaml", manifest, manifest_len, err) ||
        ! packing_pack (r, bundle, false, err) || ! put_line (r, dir, has_start, check, err))
        return false;
    out_printf ("%s: a case for mur eval run --model recorded\n", dir);
    return true;
}
