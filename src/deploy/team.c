/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/team.h"

#include "base/alloc.h"
#include "fs/paths.h"

#include <libgen.h>
#include <sys/stat.h>

#define ROSTER_BYTES ((size_t)1 << 20)

/* The folder of what was named, canonical. Owned. */
static char *
folder_of (const char *path, struct mur_error **err)
{
    struct stat st;
    _cleanup_free_ char *copy = x_strdup (path);
    bool is_folder = stat (path, &st) == 0 && S_ISDIR (st.st_mode);
    return fs_canonical_path (is_folder ? path : dirname (copy), err);
}

static void
index_members (struct team *t)
{
    size_t len = t->admission.roster->len;
    t->manifests = x_new_array (const struct capsule_manifest *, len);
    t->sha256 = x_new_array (const char *, len);
    for (size_t i = 0; i < len; i++) {
        t->manifests[i] = t->admission.members[i].manifest;
        t->sha256[i] = t->admission.members[i].capsule->package->sha256;
    }
}

bool
team_read (const char *path, struct team *t, struct mur_error **err)
{
    *t = (struct team){ .dir = folder_of (path, err) };
    t->stores = t->dir ? stores_new (t->dir, err) : NULL;
    _cleanup_lock_ struct lock *lock = t->stores ? lock_read (t->dir, err) : NULL;
    if (! lock || ! roster_admission (path, t->stores, lock, &t->admission, err) ||
        ! fs_read_regular (t->admission.roster->file, ROSTER_BYTES, &t->text, err))
        return false;
    for (size_t i = 0; ! lock->exists && i < t->admission.roster->len; i++)
        resolved_pin (t->admission.members[i].capsule, lock);
    t->lock_text = lock->exists ? x_strdup (lock->base) : lock_text (lock);
    index_members (t);
    return true;
}

void
team_clear (struct team *t)
{
    admission_clear (&t->admission);
    if (t->stores)
        stores_free (t->stores);
    buf_free (&t->text);
    free (t->manifests);
    free (t->sha256);
    free (t->lock_text);
    free (t->dir);
    *t = (struct team){ 0 };
}

struct deploy_formation
team_formation (const struct team *t)
{
    return (struct deploy_formation){
        .roster = t->admission.roster,
        .roster_text = t->text.data ? t->text.data : "",
        .lock_text = t->lock_text,
        .manifests = t->manifests,
        .sha256 = t->sha256,
    };
}

const struct capsule_manifest *
team_entry (const struct team *t)
{
    return t->manifests[t->admission.roster->entry];
}
