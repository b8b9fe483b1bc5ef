/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_memory.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"
#include "session/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_LIMIT_BYTES 65536
#define TYPE             "murmur.harness-session"

struct known {
    char *context_id;
    char *session_id; /* NULL: forgotten */
    uint64_t used[USAGE_MEMBERS];
};

static const char *const used_names[USAGE_MEMBERS] = { "input", "output", "cache_read",
                                                       "cache_creation", "thinking" };

struct harness_memory {
    char *store;
    struct known *items;
    size_t len, cap;
};

struct harness_memory *
harness_memory_new (const char *store)
{
    struct harness_memory *m = x_new0 (struct harness_memory);
    m->store = store ? x_strdup (store) : NULL;
    return m;
}

void
harness_memory_free (struct harness_memory *m)
{
    if (! m)
        return;
    for (size_t i = 0; i < m->len; i++) {
        free (m->items[i].context_id);
        free (m->items[i].session_id);
    }
    free (m->items);
    free (m->store);
    free (m);
}

static bool
is_segment (const char *text)
{
    return text[0] && text[0] != '.' && ! strchr (text, '/') && strlen (text) < 200;
}

/* The context's directory; -1: there is none, or it may not be had. */
static int
open_context (const char *store, const char *context_id, bool create)
{
    if (! store || ! is_segment (context_id))
        return -1;
    _cleanup_free_ char *below = x_asprintf ("conversations/%s/%s", store, context_id);
    _cleanup_error_ struct mur_error *err = NULL;
    return create ? home_open_dir (below, &err) : home_find_dir (below, &err);
}

/* The file's object, or NULL. */
static json_t *
read_file (int dir)
{
    struct fs_root *root = fs_root_new (dir, "", NULL, false); /* the descriptor is its own now */
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    json_t *o = fs_read (root, HARNESS_SESSION_FILE, FILE_LIMIT_BYTES, &text, &err)
                    ? json_loadb (text.data ? text.data : "", text.len, 0, NULL)
                    : NULL;
    fs_root_free (root);
    if (str_eq (json_get_string (o, "type"), TYPE))
        return o;
    json_decref (o);
    return NULL;
}

static struct known *
known (const struct harness_memory *m, const char *context_id)
{
    for (size_t i = 0; i < m->len; i++)
        if (strcmp (m->items[i].context_id, context_id) == 0)
            return &m->items[i];
    return NULL;
}

static void
remember (struct harness_memory *m, const char *context_id, const char *session_id,
          const uint64_t used[USAGE_MEMBERS])
{
    struct known *k = known (m, context_id);
    if (! k) {
        x_grow (m->items, m->len, m->cap);
        k = &m->items[m->len++];
        *k = (struct known){ .context_id = x_strdup (context_id) };
    }
    free (k->session_id);
    k->session_id = session_id ? x_strdup (session_id) : NULL;
    for (size_t i = 0; i < USAGE_MEMBERS; i++)
        k->used[i] = used ? used[i] : 0;
}

static char *
stored (const char *store, const char *context_id, uint64_t used[USAGE_MEMBERS])
{
    int dir = open_context (store, context_id, false);
    _cleanup_json_ json_t *o = dir >= 0 ? read_file (dir) : NULL;
    const char *id = json_get_string (o, "session_id");
    const json_t *counts = json_object_get (o, "used");
    for (size_t i = 0; used && i < USAGE_MEMBERS; i++)
        (void)json_get_u64 (counts, used_names[i], &used[i]);
    return id && id[0] ? x_strdup (id) : NULL;
}

char *
harness_memory_find (const struct harness_memory *m, const char *context_id,
                     uint64_t used[USAGE_MEMBERS])
{
    const struct known *k = known (m, context_id);
    if (! k)
        return stored (m->store, context_id, used);
    if (used)
        memcpy (used, k->used, sizeof k->used);
    return k->session_id ? x_strdup (k->session_id) : NULL;
}

bool
harness_memory_keep (struct harness_memory *m, const char *context_id, const char *session_id,
                     const char *harness, const char *driver, const uint64_t used[USAGE_MEMBERS])
{
    remember (m, context_id, session_id, used);
    if (! m->store)
        return true;
    _cleanup_close_ int dir = open_context (m->store, context_id, true);
    if (dir < 0)
        return false;
    int copy = fcntl (dir, F_DUPFD_CLOEXEC, 3);
    _cleanup_json_ json_t *before = copy >= 0 ? read_file (copy) : NULL;
    uint64_t now = clock_unix_ms (), created = now;
    (void)json_get_u64 (before, "created_ms", &created);
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "type", TYPE);
    json_set_string (o, "session_id", session_id);
    json_set_string (o, "harness", harness);
    json_set_string (o, "driver", driver);
    json_set_u64 (o, "created_ms", created);
    json_set_u64 (o, "updated_ms", now);
    json_t *counts = used ? json_object () : NULL;
    for (size_t i = 0; counts && i < USAGE_MEMBERS; i++)
        json_set_u64 (counts, used_names[i], used[i]);
    if (counts)
        json_object_set_new (o, "used", counts);
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_ORDERED);
    return fs_replace_at (dir, HARNESS_SESSION_FILE, text, strlen (text), 0600, true, NULL);
}

char *
harness_memory_forget (struct harness_memory *m, const char *context_id)
{
    char *dropped = harness_memory_find (m, context_id, NULL);
    remember (m, context_id, NULL, NULL);
    _cleanup_close_ int dir = open_context (m->store, context_id, false);
    if (dir >= 0)
        (void)unlinkat (dir, HARNESS_SESSION_FILE, 0);
    return dropped;
}

char *
harness_memory_path (const struct harness_memory *m, const char *context_id)
{
    _cleanup_free_ char *below = x_asprintf ("conversations/%s/%s/" HARNESS_SESSION_FILE,
                                             m->store ? m->store : "-", context_id);
    char *path = m->store ? home_path_below (below, NULL) : NULL;
    return path ? path : x_strdup ("no file: context.record is off");
}

bool
harness_memory_exists (const char *store, const char *context_id)
{
    _cleanup_free_ char *id = stored (store, context_id, NULL);
    return id != NULL;
}
