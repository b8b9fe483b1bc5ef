/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/ended.h"

#include "base/alloc.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST_OWNERS UINT16_MAX
#define BLOCK       1024 /* columns are looked at in blocks of so many */
#define BUCKETS     65536

/* What the index file holds of each, by its number. */
struct place {
    uint64_t offset; /* of its record */
    uint64_t revision;
    uint64_t timestamp_ms;
    uint64_t len;
};

/* How many tasks of an owner, or of none, ended how. */
struct tally {
    uint32_t of_state[TASK_REJECTED + 1];
};

struct ended_tasks {
    int dir_fd;
    int records_fd, index_fd; /* -1 before the first */
    uint64_t records_len;
    size_t len, cap;
    /* What lists are filtered by, a column each, of narrow numbers: a block of one is compared in a
     * handful of vector instructions, so that a million are looked through in a fraction of a
     * millisecond, whatever is asked. */
    uint32_t *contexts, *contexts_too; /* two halves of a hash */
    uint32_t *seconds;                 /* of the ending, Unix */
    uint16_t *milliseconds;            /* within that second */
    uint16_t *owners;                  /* 0: none; else the place in <owner_names>, from 1 */
    uint8_t *states;
    /* By id: the newest of each bucket, and of each the next older one; numbers + 1, 0 ends. */
    uint32_t *newest_of, *older_than;
    uint32_t *ids; /* hashes */
    struct strv owner_names;
    struct tally *tallies; /* by the number of the owner, 0 being none */
};

struct ended_tasks *
ended_tasks_new (int dir_fd)
{
    struct ended_tasks *x = x_new0 (struct ended_tasks);
    x->dir_fd = dir_fd;
    x->records_fd = x->index_fd = -1;
    x->tallies = x_new_array (struct tally, 1);
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
    void *columns[] = { x->contexts, x->contexts_too, x->seconds,    x->milliseconds, x->owners,
                        x->states,   x->newest_of,    x->older_than, x->ids,          x->tallies };
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

static uint32_t *
bucket_of (const struct ended_tasks *x, uint64_t hash)
{
    return &x->newest_of[hash % BUCKETS];
}

bool
ended_tasks_find (const struct ended_tasks *x, const char *id, struct ended_task *out)
{
    uint64_t hash = hash_of (id);
    if (! x->len)
        return false;
    for (uint32_t at = *bucket_of (x, hash); at; at = x->older_than[at - 1]) {
        if (x->ids[at - 1] != (uint32_t)(hash >> 32) || ! read_task (x, at - 1, out))
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
    x->cap = x->cap ? x->cap * 2 : BLOCK;
    x->contexts = x_reallocarray (x->contexts, x->cap, sizeof (*x->contexts));
    x->contexts_too = x_reallocarray (x->contexts_too, x->cap, sizeof (*x->contexts_too));
    x->seconds = x_reallocarray (x->seconds, x->cap, sizeof (*x->seconds));
    x->milliseconds = x_reallocarray (x->milliseconds, x->cap, sizeof (*x->milliseconds));
    x->owners = x_reallocarray (x->owners, x->cap, sizeof (*x->owners));
    x->states = x_reallocarray (x->states, x->cap, sizeof (*x->states));
    x->older_than = x_reallocarray (x->older_than, x->cap, sizeof (*x->older_than));
    x->ids = x_reallocarray (x->ids, x->cap, sizeof (*x->ids));
    if (! x->newest_of)
        x->newest_of = x_new_array (uint32_t, BUCKETS);
}

/* The number of an owner, who gets one, and a tally, with the first task. */
static uint16_t
owner_numbered (struct ended_tasks *x, const char *owner)
{
    if (owner && ! owner_number (x, owner)) {
        strv_push (&x->owner_names, owner);
        x->tallies = x_reallocarray (x->tallies, x->owner_names.len + 1, sizeof (*x->tallies));
        x->tallies[x->owner_names.len] = (struct tally){ 0 };
    }
    return owner_number (x, owner);
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
    grow_columns (x);
    const uint64_t context = hash_of (view->context_id), id = hash_of (view->id);
    const size_t at = x->len++;
    x->contexts[at] = (uint32_t)context;
    x->contexts_too[at] = (uint32_t)(context >> 32);
    x->seconds[at] = (uint32_t)(view->timestamp_ms / 1000);
    x->milliseconds[at] = (uint16_t)(view->timestamp_ms % 1000);
    x->owners[at] = owner_numbered (x, owner);
    x->states[at] = (uint8_t)view->state;
    x->tallies[x->owners[at]].of_state[view->state]++;
    x->ids[at] = (uint32_t)(id >> 32);
    x->older_than[at] = *bucket_of (x, id);
    *bucket_of (x, id) = (uint32_t)at + 1;
    return true;
}

/* --- lists --- */

/* A filter in the words of the columns. */
struct columns_filter {
    const struct ended_filter *asked;
    uint64_t context;
    uint16_t owner;
    uint32_t second;
    uint16_t millisecond;
};

static struct columns_filter
prepared (const struct ended_tasks *x, const struct ended_filter *f)
{
    const uint64_t second = f->after_ms / 1000;
    return (struct columns_filter){
        .asked = f,
        .context = f->context_id ? hash_of (f->context_id) : 0,
        .owner = owner_number (x, f->owner),
        .second = second > UINT32_MAX ? UINT32_MAX : (uint32_t)second,
        .millisecond = second > UINT32_MAX ? UINT16_MAX : (uint16_t)(f->after_ms % 1000),
    };
}

/* Each column that is asked about takes out of <hits> what it does not have. Loops of one
 * comparison over narrow numbers, and no branch in them: the compiler makes vectors of them. */

static void
keep_state (const struct ended_tasks *x, size_t from, size_t n, uint8_t state,
            uint8_t *restrict hits)
{
    const uint8_t *restrict states = x->states + from;
    for (size_t i = 0; i < n; i++)
        hits[i] &= states[i] == state;
}

static void
keep_owner (const struct ended_tasks *x, size_t from, size_t n, uint16_t owner,
            uint8_t *restrict hits)
{
    const uint16_t *restrict owners = x->owners + from;
    for (size_t i = 0; i < n; i++)
        hits[i] &= owners[i] == owner;
}

static void
keep_context (const struct ended_tasks *x, size_t from, size_t n, uint64_t context,
              uint8_t *restrict hits)
{
    const uint32_t *restrict one = x->contexts + from, *restrict other = x->contexts_too + from;
    const uint32_t low = (uint32_t)context, high = (uint32_t)(context >> 32);
    for (size_t i = 0; i < n; i++)
        hits[i] &= (one[i] == low) & (other[i] == high);
}

static void
keep_after (const struct ended_tasks *x, size_t from, size_t n, uint32_t second, uint16_t ms,
            uint8_t *restrict hits)
{
    const uint32_t *restrict seconds = x->seconds + from;
    const uint16_t *restrict milliseconds = x->milliseconds + from;
    for (size_t i = 0; i < n; i++)
        hits[i] &= (seconds[i] > second) | ((seconds[i] == second) & (milliseconds[i] >= ms));
}

/* Marks which of <n> (at most BLOCK) from <from> match, and returns how many do. */
static size_t
match_block (const struct ended_tasks *x, const struct columns_filter *f, size_t from, size_t n,
             uint8_t hits[static BLOCK])
{
    memset (hits, 1, n);
    if (f->asked->is_owned && ! f->owner)
        memset (hits, 0, n);
    if (f->asked->has_state)
        keep_state (x, from, n, (uint8_t)f->asked->state, hits);
    if (f->asked->is_owned)
        keep_owner (x, from, n, f->owner, hits);
    if (f->asked->context_id)
        keep_context (x, from, n, f->context, hits);
    if (f->asked->has_after)
        keep_after (x, from, n, f->second, f->millisecond, hits);
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += hits[i];
    return count;
}

/* Of owners and states, which are counted as they come. */
static uint64_t
tallied (const struct ended_tasks *x, const struct columns_filter *f)
{
    uint64_t count = 0;
    for (size_t owner = 0; owner <= x->owner_names.len; owner++) {
        if (f->asked->is_owned && (! f->owner || owner != f->owner))
            continue;
        for (size_t state = 0; state <= TASK_REJECTED; state++)
            if (! f->asked->has_state || state == f->asked->state)
                count += x->tallies[owner].of_state[state];
    }
    return count;
}

uint64_t
ended_tasks_count (const struct ended_tasks *x, const struct ended_filter *f)
{
    const struct columns_filter columns = prepared (x, f);
    uint8_t hits[BLOCK];
    if (! f->context_id && ! f->has_after)
        return tallied (x, &columns);
    uint64_t count = 0;
    for (size_t from = 0; from < x->len; from += BLOCK)
        count +=
            match_block (x, &columns, from, x->len - from < BLOCK ? x->len - from : BLOCK, hits);
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
    uint8_t hits[BLOCK];
    while (*at > 0) {
        const size_t from = (*at - 1) / BLOCK * BLOCK, n = *at - from;
        if (! match_block (x, &columns, from, n, hits)) {
            *at = from;
            continue;
        }
        while (! hits[--*at - from])
            ;
        if (read_task (x, *at, out))
            return true;
    }
    return false;
}
