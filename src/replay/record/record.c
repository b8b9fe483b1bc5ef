/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/record/record.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "fs/paths.h"
#include <string.h>

#define LARGEST_BODY ((size_t)1 << 30)

const char *
record_keep (struct record *r, const char *text)
{
    return text ? arena_strdup (r->arena, text) : NULL;
}

void
record_free (struct record *r)
{
    if (! r)
        return;
    for (size_t i = 0; i < r->task_count; i++) {
        free (r->tasks[i].models.items);
        free (r->tasks[i].calls.items);
        free (r->tasks[i].checks.items);
        free (r->tasks[i].refusals.items);
        free (r->tasks[i].controls.items);
    }
    free (r->tasks);
    free (r->children);
    if (r->tape)
        r->free_tape (r->tape);
    free (r->dir);
    arena_free (r->arena);
    free (r);
}

/* --- places --- */

const struct rec_model *
record_model (const struct rec_task *t, const char *origin, uint64_t turn, size_t number)
{
    for (size_t i = 0; i < t->models.count; i++) {
        const struct rec_model *m = &t->models.items[i];
        if (m->turn == turn && m->number == number && str_eq (m->origin, origin))
            return m;
    }
    return NULL;
}

const struct rec_call *
record_call (const struct rec_task *t, uint64_t turn, size_t number)
{
    for (size_t i = 0; i < t->calls.count; i++)
        if (t->calls.items[i].turn == turn && t->calls.items[i].number == number)
            return &t->calls.items[i];
    return NULL;
}

const char **
record_messages (const struct rec_model *m, size_t *count)
{
    *count = m->messages.kept + m->messages.added_count;
    const char **all = x_new_array (const char *, *count + 1);
    size_t upto = *count;
    for (const struct rec_messages *at = &m->messages; at && upto; at = at->before) {
        for (size_t i = at->kept; i < upto; i++)
            all[i] = at->added[i - at->kept];
        upto = at->kept < upto ? at->kept : upto;
    }
    return all;
}

/* --- bodies --- */

static bool
fail_body (const struct record *r, const char *sha256, const char *what, struct mur_error **err)
{
    mur_fail (err, E_RPL_004, "%s/blobs/%s %s", r->dir, sha256, what);
    return mur_hint (err, "the record is not whole: nothing was replayed");
}

bool
record_body (const struct record *r, const char *sha256, struct buf *out, struct mur_error **err)
{
    char now[SHA256_HEX_LEN + 1];
    if (! sha256_hex_is_valid (sha256))
        return mur_fail (err, E_RPL_004, "%s: \"%s\" is no digest", r->dir, sha256);
    _cleanup_free_ char *path = x_asprintf ("%s/blobs/%s", r->dir, sha256);
    struct stat st;
    if (lstat (path, &st) != 0)
        return fail_body (r, sha256, "is missing", err);
    if (! S_ISREG (st.st_mode))
        return fail_body (r, sha256, "is no ordinary file", err);
    if (! fs_read_regular (path, LARGEST_BODY, out, err))
        return false;
    sha256_hex (out->data ? out->data : "", out->len, now);
    return strcmp (now, sha256) == 0 || fail_body (r, sha256, "was altered", err);
}

bool
record_has_harness (const struct record *r)
{
    for (size_t i = 0; i < r->task_count; i++)
        if (r->tasks[i].has_harness)
            return true;
    return false;
}
