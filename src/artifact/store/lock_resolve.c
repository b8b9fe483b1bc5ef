/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/lock_resolve.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "manifest/text/merge_marks.h"

#include <fcntl.h>
#include <string.h>

#define LOCK_BYTES_MAX ((size_t)8 << 20)

static void
swap (struct lock_entry *a, struct lock_entry *b)
{
    struct lock_entry held = *a;
    *a = *b;
    *b = held;
}

/* Two sides pinned <ours> differently. */
static bool
choose (struct lock_entry *ours, struct lock_entry *theirs, const struct lock_resolution *how,
        const char *path, struct mur_error **err)
{
    _cleanup_free_ char *left = lock_entry_text (ours), *right = lock_entry_text (theirs);
    if (strcmp (left, right) == 0)
        return true;
    if (strcmp (ours->version, theirs->version) == 0) {
        bool is_same_bytes = ours->any && theirs->any && strcmp (ours->any, theirs->any) == 0;
        if (is_same_bytes)
            return true;
        mur_fail (err, E_REG_005, "%s: both sides pin %s %s, but not the same bytes", path,
                  ours->name, ours->version);
        return mur_hint (err, "find out which bytes are right and remove the other side by hand");
    }
    const char *wanted = how->wanted (how->ctx, ours->name);
    bool takes_theirs = wanted && strcmp (wanted, theirs->version) == 0;
    if (! takes_theirs && ! (wanted && strcmp (wanted, ours->version) == 0))
        diag_note ("%s: %s was pinned to %s and to %s; the first is kept", path, ours->name,
                   ours->version, theirs->version);
    if (takes_theirs)
        swap (ours, theirs);
    return true;
}

static bool
join (struct lock *ours, struct lock *theirs, const struct lock_resolution *how,
      struct mur_error **err)
{
    for (size_t i = 0; i < theirs->count; i++) {
        struct lock_entry *e = &theirs->entries[i], *mine = lock_find (ours, e->name);
        if (mine && ! choose (mine, e, how, ours->path, err))
            return false;
        if (mine)
            continue;
        x_grow (ours->entries, ours->count, ours->cap);
        ours->entries[ours->count] = (struct lock_entry){ .name = x_strdup ("") };
        swap (&ours->entries[ours->count++], e);
    }
    return true;
}

static struct lock *
parse_side (const char *text, size_t len, enum merge_side side, const char *path,
            struct mur_error **err)
{
    _cleanup_buf_ struct buf whole = { 0 };
    merge_side_put (&whole, text, len, side);
    return lock_parse (whole.data ? whole.data : "", whole.len, path, err);
}

static bool
write_resolved (const char *dir, const struct lock *l, struct mur_error **err)
{
    _cleanup_close_ int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", dir);
    _cleanup_free_ char *text = lock_text (l);
    return fs_replace_at (fd, LOCK_FILE_NAME, text, strlen (text), 0644, true, err);
}

bool
lock_resolve (const char *dir, const struct lock_resolution *how, size_t *kept,
              struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, LOCK_FILE_NAME);
    _cleanup_buf_ struct buf text = { 0 };
    *kept = 0;
    if (! fs_read_path (path, LOCK_BYTES_MAX, &text, err))
        return false;
    if (! merge_mark_line (text.data ? text.data : "", text.len))
        return true;
    _cleanup_lock_ struct lock *ours = parse_side (text.data, text.len, MERGE_OURS, path, err);
    _cleanup_lock_ struct lock *theirs =
        ours ? parse_side (text.data, text.len, MERGE_THEIRS, path, err) : NULL;
    if (! theirs || ! join (ours, theirs, how, err) || ! lock_check (ours, err) ||
        ! write_resolved (dir, ours, err))
        return false;
    *kept = ours->count;
    return true;
}
