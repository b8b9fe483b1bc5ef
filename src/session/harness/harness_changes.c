/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_changes.h"

#include "base/alloc.h"

#define LISTED_MAX 500

static const char *const change_names[] = {
    [TREE_CREATED] = "created",
    [TREE_MODIFIED] = "modified",
    [TREE_DELETED] = "deleted",
};

struct changes {
    json_t *list;
    uint64_t count;
};

static void
add (void *ctx, const char *path, enum tree_change what, const char *before, const char *after)
{
    struct changes *c = ctx;
    if (++c->count > LISTED_MAX)
        return;
    json_t *item = json_object ();
    json_set_string (item, "path", path);
    json_set_string (item, "change", change_names[what]);
    json_object_set_new (item, "before", before ? json_string (before) : json_null ());
    json_object_set_new (item, "after", after ? json_string (after) : json_null ());
    json_array_append_new (c->list, item);
}

void
harness_changes_end (const struct harness_run *run)
{
    const struct session *s = run->session;
    struct changes c = { .list = json_array () };
    bool is_whole = tree_changes (run->before, s->places.work, add, &c);
    if (c.count) {
        _cleanup_free_ char *files = json_text (c.list, JSON_TEXT_ORDERED);
        TRACE (s->trace, NULL, harness_changes, .task_id = run->task->task->id, .count = c.count,
               .files = files, .is_whole = is_whole && c.count <= LISTED_MAX);
    }
    json_decref (c.list);
}
