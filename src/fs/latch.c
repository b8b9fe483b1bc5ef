/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/latch.h"

#include "fs/internal.h"

#include "base/alloc.h"

#include <pthread.h>

struct fs_latch {
    pthread_mutex_t lock;
    struct fs_refusal *refusals;
    size_t len;
    size_t cap;
};

static const char *const operation_names[] = {
    [FS_WRITE] = "write",           [FS_APPEND] = "append", [FS_READ] = "read",
    [FS_CREATE_DIR] = "create_dir", [FS_REMOVE] = "remove",
};

static const char *const reason_names[] = {
    [FS_SYMLINK] = "symlink",
    [FS_HARD_LINK] = "hard_link",
    [FS_NOT_A_REGULAR_FILE] = "not_a_regular_file",
    [FS_INVALID_COMPONENT] = "invalid_component",
};

const char *
fs_operation_name (enum fs_operation operation)
{
    return operation_names[operation];
}

const char *
fs_reason_name (enum fs_reason reason)
{
    return reason_names[reason];
}

struct fs_latch *
fs_latch_new (void)
{
    struct fs_latch *l = x_new0 (struct fs_latch);
    pthread_mutex_init (&l->lock, NULL);
    return l;
}

void
fs_latch_free (struct fs_latch *l)
{
    if (! l)
        return;
    fs_refusals_free (l->refusals, l->len);
    pthread_mutex_destroy (&l->lock);
    free (l);
}

static bool
is_same (const struct fs_refusal *a, const struct fs_refusal *b)
{
    return a->operation == b->operation && a->reason == b->reason && str_eq (a->path, b->path) &&
           str_eq (a->refused_at, b->refused_at);
}

void
fs_latch_push (struct fs_latch *l, struct fs_refusal refusal)
{
    pthread_mutex_lock (&l->lock);
    bool is_known = false;
    for (size_t i = 0; i < l->len && ! is_known; i++)
        is_known = is_same (&l->refusals[i], &refusal);
    if (is_known) {
        free (refusal.path);
        free (refusal.refused_at);
    } else {
        x_grow (l->refusals, l->len, l->cap);
        l->refusals[l->len++] = refusal;
    }
    pthread_mutex_unlock (&l->lock);
}

size_t
fs_latch_drain (struct fs_latch *l, struct fs_refusal **refusals)
{
    pthread_mutex_lock (&l->lock);
    size_t count = l->len;
    *refusals = steal_ptr (&l->refusals);
    l->len = l->cap = 0;
    pthread_mutex_unlock (&l->lock);
    return count;
}

void
fs_refusals_free (struct fs_refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free (refusals[i].path);
        free (refusals[i].refused_at);
    }
    free (refusals);
}
