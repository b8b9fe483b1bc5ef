/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/lock_merge.h"

#include "base/alloc.h"

#include <string.h>

/* The same pin; which of two sessions brought it makes no difference. */
static bool
is_same (const struct lock_entry *a, const struct lock_entry *b)
{
    if (! a || ! b)
        return a == b;
    struct lock_entry x = *a, y = *b;
    x.session = y.session = NULL;
    _cleanup_free_ char *left = lock_entry_text (&x), *right = lock_entry_text (&y);
    return strcmp (left, right) == 0;
}

/* What becomes of one name. */
enum outcome {
    KEEP_MINE,
    TAKE_THEIRS,
    CONFLICT,
};

static enum outcome
judge (const struct lock_entry *was, const struct lock_entry *mine, const struct lock_entry *theirs)
{
    if (is_same (mine, theirs) || is_same (was, theirs))
        return KEEP_MINE;
    return is_same (was, mine) ? TAKE_THEIRS : CONFLICT;
}

static bool
check (const struct lock *base, const struct lock *mine, const struct lock *theirs,
       const char *name, struct mur_error **err)
{
    if (judge (lock_find (base, name), lock_find (mine, name), lock_find (theirs, name)) !=
        CONFLICT)
        return true;
    mur_fail (err, E_REG_005, "%s: another program changed the entry of %s meanwhile", mine->path,
              name);
    return mur_hint (err, "nothing was written; look at murmur.lock and run the command again");
}

static bool
check_all (const struct lock *base, const struct lock *mine, const struct lock *theirs,
           struct mur_error **err)
{
    for (size_t i = 0; i < mine->count; i++)
        if (! check (base, mine, theirs, mine->entries[i].name, err))
            return false;
    for (size_t i = 0; i < theirs->count; i++)
        if (! check (base, mine, theirs, theirs->entries[i].name, err))
            return false;
    return true;
}

static void
swap (struct lock_entry *a, struct lock_entry *b)
{
    struct lock_entry held = *a;
    *a = *b;
    *b = held;
}

/* Entries of mine that they changed or took away. */
static void
take_changes (const struct lock *base, struct lock *mine, struct lock *theirs)
{
    for (size_t i = 0; i < mine->count;) {
        struct lock_entry *e = &mine->entries[i], *theirs_of = lock_find (theirs, e->name);
        if (judge (lock_find (base, e->name), e, theirs_of) == KEEP_MINE) {
            i++;
        } else if (theirs_of) {
            swap (e, theirs_of);
            i++;
        } else {
            lock_drop (mine, e->name);
        }
    }
}

/* Entries that only they have. */
static void
take_additions (const struct lock *base, struct lock *mine, struct lock *theirs)
{
    for (size_t i = 0; i < theirs->count; i++) {
        struct lock_entry *e = &theirs->entries[i];
        if (lock_find (mine, e->name) || judge (lock_find (base, e->name), NULL, e) == KEEP_MINE)
            continue;
        x_grow (mine->entries, mine->count, mine->cap);
        mine->entries[mine->count] = (struct lock_entry){ .name = x_strdup ("") };
        swap (&mine->entries[mine->count++], e);
    }
}

bool
lock_merge (struct lock *mine, const char *text, size_t len, struct mur_error **err)
{
    static const char empty[] = "lock_version: 3\nartifacts: []\n";
    const char *was = mine->base ? mine->base : empty;
    _cleanup_lock_ struct lock *base = lock_parse (was, strlen (was), mine->path, err);
    _cleanup_lock_ struct lock *theirs = base ? lock_parse (text, len, mine->path, err) : NULL;
    if (! theirs || ! check_all (base, mine, theirs, err))
        return false;
    take_changes (base, mine, theirs);
    take_additions (base, mine, theirs);
    return true;
}
