/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/ended.h"

#include "base/alloc.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST_OWNERS UINT16_MAX

/* What the index file holds of each, by its number. */
struct place {
    uint64_t offset; /* of its record */
    uint64_t revision;
    uint64_t timestamp_ms;
    uint64_t len;
};

struct ended_tasks {
    int dir_fd;
    int records_fd, index_fd; /* -1 before the first */
    uint64_t records_len;
    size_t len, cap;
    /* What lists are filtered by, a column each: one is read through in a fraction of a
     * millisecond. */
    uint64_t *contexts; /* hashes */
    uint32_t *seconds;  /* of the ending, Unix */
    uint32_t *ids;      /* hashes */
    uint16_t *owners;   /* 0: none; else the place in <owner_names>, from 1 */
    uint8_t *states;
    uint32_t *by_id; /* open hash table: numbers + 1, 0 is free */
    size_t by_id_cap;
    struct strv owner_names;
};

struct ended_tasks *
ended_tasks_new (int dir_fd)
{
    struct ended_tasks *x = x_new0 (struct ended_tasks);
    x->dir_fd = dir_fd;
    x->records_fd = x->index_fd = -1;
    return x;
}

void
ended_tasks_free (struct ended_tasks *x)
{
    if (! x)
        return;
    if (x->records_fd >= 0)
        close (x->records_fd);
    if (x->index_fd >= 0)
        close (x->index_fd);
    void *columns[] = { x->contexts, x->seconds, x->ids, x->owners, x->states, x->by_id };
    for (size_t i = 0; i < ARRAY_LEN (columns); i++)
        free (columns[i]);
    strv_free (&x->owner_names);
    free (x);
}

void
ended_task_clear (struct ended_task *t)
{
    free (t->view.id);
    free (t->view.context_id);
    task_view_clear (&t->view);
    free (t->owner);
    *t = (struct ended_task){ 0 };
}

/* --- numbers of texts --- */

static uint64_t
hash_of (const char *text)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        h = (h ^ *c) * 0x100000001b3ull;
    h ^= h >> 32;
    return h * 0xd6e8feb86659fd93ull;
}

/* The number of an owner, or 0. */
static uint16_t
owner_number (const struct ended_tasks *x, const char *owner)
{
    for (size_t i = 0; owner && i < x->owner_names.len; i++)
        if (str_eq (x->owner_names.items[i], owner))
            return (uint16_t)(i + 1);
    return 0;
}

/* --- records --- */

static int
unnamed_file (int dir_fd)
{
    int fd = openat (dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    static const char name[] = ".ended-tasks";
    fd = openat (dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlinkat (dir_fd, name, 0);
    return fd;
}

static bool
are_files_open (struct ended_tasks *x)
{
    if (x->records_fd < 0)
        x->records_fd = unnamed_file (x->dir_fd);
    if (x->index_fd < 0)
        x->index_fd = unnamed_file (x->dir_fd);
    return x->records_fd >= 0 && x->index_fd >= 0;
}

static bool
read_place (const struct ended_tasks *x, size_t number, struct place *place)
{
    return pread (x->index_fd, place, sizeof (*place), (off_t)(number * sizeof (*place))) ==
           sizeof (*place);
}

static char *
record_text (const struct task_view *v, const char *owner)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "id", v->id);
    json_set_string (o, "context", v->context_id);
    json_set_string (o, "status", v->status_text);
    if (v->response)
        json_set_string (o, "response", v->response);
    if (v->metadata)
        json_object_set (o, "metadata", v->metadata);
    if (owner)
        json_set_string (o, "owner", owner);
    return json_text (o, JSON_TEXT_ORDERED);
}

static char *
copied (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    return text ? x_strdup (text) : NULL;
}

static bool
read_task (const struct ended_tasks *x, size_t number, struct ended_task *out)
{
    struct place place;
    if (! read_place (x, number, &place))
        return false;
    _cleanup_free_ char *text = x_malloc (place.len + 1);
    if (pread (x->records_fd, text, place.len, (off_t)place.offset) != (ssize_t)place.len)
        return false;
    _cleanup_json_ json_t *o = json_loadb (text, place.len, 0, NULL);
    if (! o)
        return false;
    *out = (struct ended_task){
        .view = { .id = copied (o, "id"),
                  .context_id = copied (o, "context"),
                  .state = (enum task_state)x->states[number],
                  .timestamp_ms = place.timestamp_ms,
                  .status_text = copied (o, "status"),
                  .response = copied (o, "response"),
                  .metadata = json_incref (json_object_get (o, "metadata")) },
        .owner = copied (o, "owner"),
        .revision = place.revision,
    };
    return true;
}

/* --- by id --- */

static size_t
place_of (const struct ended_tasks *x, uint32_t hash)
{
    return hash & (x->by_id_cap - 1);
}

static void
note_id (struct ended_tasks *x, size_t number)
{
    size_t at = place_of (x, x->ids[number]);
    while (x->by_id[at])
        at = (at + 1) & (x->by_id_cap - 1);
    x->by_id[at] = (uint32_t)number + 1;
}

/* At most three quarters are taken. */
static void
grow_table (struct ended_tasks *x)
{
    if (x->len < x->by_id_cap - x->by_id_cap / 4)
        return;
    x->by_id_cap = x->by_id_cap ? x->by_id_cap * 2 : 256;
    free (x->by_id);
    x->by_id = x_new_array (uint32_t, x->by_id_cap);
    for (size_t number = 0; number < x->len; number++)
        note_id (x, number);
}

bool
ended_tasks_find (const struct ended_tasks *x, const char *id, struct ended_task *out)
{
    uint32_t hash = (uint32_t)hash_of (id);
    if (! x->by_id_cap)
        return false;
    for (size_t at = place_of (x, hash); x->by_id[at]; at = (at + 1) & (x->by_id_cap - 1)) {
        size_t number = x->by_id[at] - 1;
        if (x->ids[number] != hash || ! read_task (x, number, out))
            continue;
        if (str_eq (out->view.id, id))
            return true;
        ended_task_clear (out);
    }
    return false;
}

/* --- putting --- */

static void
grow_columns (struct ended_tasks *x)
{
    if (x->len < x->cap)
        return;
    x->cap = x->cap ? x->cap * 2 : 256;
    x->contexts = x_reallocarray (x->contexts, x->cap, sizeof (*x->contexts));
    x->seconds = x_reallocarray (x->seconds, x->cap, sizeof (*x->seconds));
    x->ids = x_reallocarray (x->ids, x->cap, sizeof (*x->ids));
    x->owners = x_reallocarray (x->owners, x->cap, sizeof (*x->owners));
    x->states = x_reallocarray (x->states, x->cap, sizeof (*x->states));
}

static bool
has_room (const struct ended_tasks *x, const char *owner)
{
    return x->len < UINT32_MAX - 1 &&
           (! owner || owner_number (x, owner) || x->owner_names.len < MOST_OWNERS);
}

static bool
write_all_at (int fd, const void *data, size_t len, uint64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite (fd, (const char *)data + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool
write_record (struct ended_tasks *x, const struct task_view *view, const char *owner,
              uint64_t revision)
{
    _cleanup_free_ char *text = record_text (view, owner);
    const struct place place = { .offset = x->records_len,
                                 .revision = revision,
                                 .timestamp_ms = view->timestamp_ms,
                                 .len = strlen (text) };
    if (! write_all_at (x->records_fd, text, place.len, place.offset) ||
        ! write_all_at (x->index_fd, &place, sizeof (place), x->len * sizeof (place)))
        return false;
    x->records_len += place.len;
    return true;
}

bool
ended_tasks_put (struct ended_tasks *x, const struct task_view *view, const char *owner,
                 uint64_t revision)
{
    if (! are_files_open (x) || ! has_room (x, owner) || ! write_record (x, view, owner, revision))
        return false;
    if (owner && ! owner_number (x, owner))
        strv_push (&x->owner_names, owner);
    grow_columns (x);
    grow_table (x);
    x->contexts[x->len] = hash_of (view->context_id);
    x->seconds[x->len] = (uint32_t)(view->timestamp_ms / 1000);
    x->owners[x->len] = owner_number (x, owner);
    x->states[x->len] = (uint8_t)view->state;
    x->ids[x->len] = (uint32_t)hash_of (view->id);
    note_id (x, x->len++);
    return true;
}

/* --- lists --- */

/* A filter in the words of the columns. */
struct columns_filter {
    const struct ended_filter *asked;
    uint64_t context;
    uint16_t owner;
    uint64_t second;
};

static struct columns_filter
prepared (const struct ended_tasks *x, const struct ended_filter *f)
{
    return (struct columns_filter){
        .asked = f,
        .context = f->context_id ? hash_of (f->context_id) : 0,
        .owner = owner_number (x, f->owner),
        .second = f->after_ms / 1000,
    };
}

static bool
matches (const struct ended_tasks *x, const struct columns_filter *f, size_t number)
{
    const struct ended_filter *asked = f->asked;
    if ((asked->has_state && x->states[number] != (uint8_t)asked->state) ||
        (asked->is_owned && (! f->owner || x->owners[number] != f->owner)) ||
        (asked->context_id && x->contexts[number] != f->context) ||
        (asked->has_after && x->seconds[number] < f->second))
        return false;
    if (! asked->has_after || x->seconds[number] > f->second)
        return true;
    struct place place;
    return read_place (x, number, &place) && place.timestamp_ms >= asked->after_ms;
}

uint64_t
ended_tasks_count (const struct ended_tasks *x, const struct ended_filter *f)
{
    if (! f->has_state && ! f->is_owned && ! f->context_id && ! f->has_after)
        return x->len;
    const struct columns_filter columns = prepared (x, f);
    uint64_t count = 0;
    for (size_t i = 0; i < x->len; i++)
        count += matches (x, &columns, i);
    return count;
}

size_t
ended_tasks_below (const struct ended_tasks *x, uint64_t revision)
{
    size_t low = 0, high = x->len;
    while (revision != UINT64_MAX && low < high) {
        size_t middle = low + (high - low) / 2;
        struct place place = { 0 };
        if (! read_place (x, middle, &place) || place.revision >= revision)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

bool
ended_tasks_next (const struct ended_tasks *x, const struct ended_filter *f, size_t *at,
                  struct ended_task *out)
{
    const struct columns_filter columns = prepared (x, f);
    while (*at > 0)
        if (matches (x, &columns, --*at) && read_task (x, *at, out))
            return true;
    return false;
}
