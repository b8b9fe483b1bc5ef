/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/record/record_read.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/record/tape_read.h"
#include "replay/record/trace_lines.h"
#include "replay/record/tree_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- reading --- */

static FILE *
open_trace (const char *dir, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", dir);
    int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen (fd, "r");
    if (! file)
        mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003, "cannot read %s", path);
    return file;
}

/* One line at a time, so that a trace of any length costs what is kept of it. A last line that is
 * no whole one is where the session was killed. */
static bool
read_lines (struct record *r, FILE *file, struct mur_error **err)
{
    _cleanup_free_ char *text = NULL;
    size_t cap = 0, number = 0, torn = 0;
    for (ssize_t len; (len = getline (&text, &cap, file)) > 0;) {
        number++;
        if (strspn (text, " \t\r\n") == (size_t)len)
            continue;
        if (torn)
            return mur_fail (err, E_TRC_001, "%s/trace.jsonl:%zu: not valid JSON", r->dir, torn);
        _cleanup_json_ json_t *line = json_loadb (text, (size_t)len, 0, NULL);
        if (! line)
            torn = number;
        else
            record_take_line (r, line);
    }
    return r->session_id ||
           mur_fail (err, E_TRC_001, "%s/trace.jsonl has no session_start", r->dir);
}

static bool
fail_capture (const struct record *r, const char *missing, struct mur_error **err)
{
    mur_fail (err, E_RPL_001, "%s cannot be replayed: its trace keeps no %s", r->session_id,
              missing);
    return mur_hint (err, "record with this in the manifest, then run it again:\n  trace:\n"
                          "    capture: content");
}

static bool
fail_harness (const struct record *r, struct mur_error **err)
{
    mur_fail (err, E_RPL_001,
              "%s cannot be replayed: its trace keeps nothing that its harness wrote",
              r->session_id);
    return mur_hint (err, "record with this in the manifest, then run it again:\n  trace:\n"
                          "    capture: replay");
}

/* A trace of capture meta has digests and no bodies, one of none not even those. */
static bool
check_capture (const struct record *r, struct mur_error **err)
{
    for (size_t i = 0; i < r->task_count; i++) {
        const struct rec_task *t = &r->tasks[i];
        if (t->has_harness && ! str_eq (r->capture, "replay"))
            return fail_harness (r, err);
        if (t->has_harness) /* the tape has all of it */
            continue;
        for (size_t k = 0; k < t->models.count; k++)
            if (! t->models.items[k].error_code && ! t->models.items[k].response_sha)
                return fail_capture (r, "digests and bodies of requests and answers", err);
        for (size_t k = 0; k < t->calls.count; k++)
            if (! t->calls.items[k].is_skill && ! t->calls.items[k].is_refused &&
                ! t->calls.items[k].has_output)
                return fail_capture (r, "bodies of answers and outputs of tools", err);
    }
    if (r->capture && ! str_eq (r->capture, "content") && ! str_eq (r->capture, "replay"))
        return fail_capture (r, "bodies of requests and answers", err);
    _cleanup_free_ char *blobs = x_asprintf ("%s/blobs", r->dir);
    return access (blobs, R_OK) == 0 || ! r->task_count || ! r->tasks[0].models.count ||
           fail_capture (r, "bodies of requests and answers", err);
}

struct record *
record_read (const char *dir, struct mur_error **err)
{
    _cleanup_fclose_ FILE *file = open_trace (dir, err);
    if (! file)
        return NULL;
    _cleanup_record_ struct record *r = x_new0 (struct record);
    r->arena = arena_new ();
    r->dir = x_strdup (dir);
    if (! read_lines (r, file, err) || ! check_capture (r, err) || ! tape_read (r, err))
        return NULL;
    return steal_ptr (&r);
}

/* --- bodies --- */

static bool
check_one (const struct record *r, const char *sha256, struct mur_error **err)
{
    _cleanup_buf_ struct buf body = { 0 };
    return ! sha256 || record_body (r, sha256, &body, err);
}

static bool
check_model (const struct record *r, const struct rec_model *m, struct mur_error **err)
{
    if (! check_one (r, m->response_sha, err) || ! check_one (r, m->system_sha, err) ||
        ! check_one (r, m->tools_sha, err))
        return false;
    for (size_t i = 0; i < m->messages.added_count; i++)
        if (! check_one (r, m->messages.added[i], err))
            return false;
    return true;
}

/* What the tape names, each moment's files among it. */
static bool
check_tape (const struct record *r, struct mur_error **err)
{
    const struct rec_tape *t = r->tape;
    for (size_t i = 0; t && i < t->bodies.len; i++)
        if (! check_one (r, t->bodies.items[i], err))
            return false;
    for (size_t i = 0; t && i < t->tree_count; i++)
        if (! tree_check (r, t->trees[i].sha, err))
            return false;
    return true;
}

bool
record_check (const struct record *r, struct mur_error **err)
{
    for (size_t i = 0; i < r->task_count; i++) {
        const struct rec_task *t = &r->tasks[i];
        if (! check_one (r, t->text_sha, err))
            return false;
        for (size_t k = 0; k < t->models.count; k++)
            if (! check_model (r, &t->models.items[k], err))
                return false;
    }
    return check_one (r, r->code.prompt_sha, err) && check_one (r, r->code.manifest_sha, err) &&
           check_tape (r, err);
}
