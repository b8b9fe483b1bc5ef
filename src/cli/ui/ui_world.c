/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_world.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/running/door_task.h"
#include "cli/running/listing.h"
#include "cli/ui/ui_fleet.h"
#include "cli/ui/ui_groups.h"
#include "cli/ui/ui_session.h"
#include "home/paths.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define LOOK_MS       1000  /* where no notice comes */
#define SCAN_MS       2000  /* whether processes are still there */
#define WALK_MS       10000 /* records of work folders that are new */
#define SETTLE_MS     40    /* notices that come together are one look */
#define DEAF_MS       10000 /* a door that did not answer is left alone for so long */
#define FOLLOW_MS     2000
#define MOST_SESSIONS 20000

struct ui_world {
    char *only; /* a work root; NULL: all */
    struct http_client *client;
    struct ui_fleet *fleet; /* NULL: this machine's sessions alone */
    struct ui_hub *hub;
    int notify_fd, wake_fd;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    bool is_closing;
    struct ui_session **items; /* newest first */
    size_t len, cap;
    struct strv unreadable;
    uint64_t scanned_ms, walked_ms;
    int running_watch;
    bool has_notice; /* something came or went among those that run */
};

static void
sleep_until_next (struct ui_world *w, int timeout_ms)
{
    struct pollfd fds[] = { { .fd = w->wake_fd, .events = POLLIN },
                            { .fd = w->notify_fd, .events = POLLIN } };
    char events[4096] __attribute__ ((aligned (__alignof__(struct inotify_event))));
    if (poll (fds, ARRAY_LEN (fds), timeout_ms) <= 0)
        return;
    (void)! read (w->wake_fd, events, sizeof (uint64_t));
    for (ssize_t n; (n = read (w->notify_fd, events, sizeof events)) > 0;)
        for (const char *at = events; at < events + n;) {
            const struct inotify_event *e = (const void *)at;
            w->has_notice |= e->wd == w->running_watch;
            at += sizeof *e + e->len;
        }
}

/* --- the list --- */

static size_t
place_of (const struct ui_world *w, const char *id)
{
    size_t low = 0, high = w->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp (w->items[middle]->id, id) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct ui_session *
find (const struct ui_world *w, const char *id)
{
    size_t at = place_of (w, id);
    return at < w->len && str_eq (w->items[at]->id, id) ? w->items[at] : NULL;
}

static struct ui_session *
add (struct ui_world *w, const char *id, const char *work_root, const char *records_dir)
{
    size_t at = place_of (w, id);
    x_grow (w->items, w->len, w->cap);
    memmove (&w->items[at + 1], &w->items[at], (w->len++ - at) * sizeof (struct ui_session *));
    return w->items[at] = ui_session_new (id, work_root, records_dir);
}

static void
tell_session (struct ui_world *w, struct ui_session *s)
{
    ui_hub_publish (w->hub, "session", json_pack ("{s:o}", "session", ui_session_json (s)));
}

/* --- looking, under the lock --- */

/* New sessions of old folders come with their running record; this is for those without a door,
 * and for those that were removed. */
static void
walk (struct ui_world *w)
{
    struct ui_groups g = { 0 };
    w->walked_ms = clock_monotonic_ms ();
    if (! ui_groups_read (&g, w->only, NULL))
        return;
    size_t seen = 0;
    for (size_t i = 0; i < g.len; i++)
        for (size_t k = 0; k < g.items[i].names.len && seen < MOST_SESSIONS; k++, seen++) {
            const char *id = g.items[i].names.items[k];
            _cleanup_free_ char *dir = x_asprintf ("%s/%s", g.items[i].path, id);
            if (! find (w, id))
                add (w, id, g.items[i].work_root, dir);
        }
    strv_free (&w->unreadable);
    w->unreadable = g.unreadable;
    g.unreadable = (struct strv){ 0 };
    ui_groups_clear (&g);
}

/* What was removed leaves the list; it is told by its absence from the next one. */
static void
drop_removed (struct ui_world *w)
{
    size_t kept = 0;
    struct stat st;
    for (size_t i = 0; i < w->len; i++) {
        struct ui_session *s = w->items[i];
        if (! s->live.is_running && stat (s->records_dir, &st) < 0 && errno == ENOENT) {
            ui_hub_publish (w->hub, "removed", json_pack ("{s:s}", "session", s->id));
            ui_session_free (s);
        } else {
            w->items[kept++] = s;
        }
    }
    w->len = kept;
}

static void
begin (struct ui_world *w, const struct running_record *r)
{
    _cleanup_free_ char *root = running_work_root (r);
    if (r->pid && w->only && ! str_eq (w->only, root))
        return;
    struct ui_session *s = find (w, r->session_id);
    if (! s)
        s = add (w, r->session_id, root, r->records_dir);
    if (s->live.is_running)
        return;
    struct ui_follow_spec follow = { .client = w->client, .hub = w->hub, .wake_fd = w->wake_fd };
    ui_session_begin (s, r, &follow);
    s->live.watch = inotify_add_watch (w->notify_fd, s->trace_path, IN_MODIFY);
    tell_session (w, s);
}

/* Lines that were added. */
static void
look_at_trace (struct ui_world *w, struct ui_session *s)
{
    struct stat st;
    if (stat (s->trace_path, &st) < 0 || st.st_size == s->live.seen_bytes)
        return;
    if (s->live.tally.fd < 0)
        token_tally_open (&s->live.tally, s->records_dir);
    if (s->live.watch < 0)
        s->live.watch = inotify_add_watch (w->notify_fd, s->trace_path, IN_MODIFY);
    s->live.seen_bytes = st.st_size;
    json_t *event = json_pack ("{s:s, s:I}", "session", s->id, "bytes", (json_int_t)st.st_size);
    ui_hub_publish (w->hub, "rows", event);
}

static void
end (struct ui_world *w, struct ui_session *s)
{
    if (s->live.watch >= 0)
        inotify_rm_watch (w->notify_fd, s->live.watch);
    look_at_trace (w, s); /* its last lines */
    ui_session_over (s);
    tell_session (w, s);
}

static bool
is_among (const struct running_scan *scan, const char *id)
{
    for (size_t i = 0; i < scan->len; i++)
        if (scan->entries[i].liveness != RUNNING_GONE &&
            str_eq (scan->entries[i].record.session_id, id))
            return true;
    return false;
}

static void
scan (struct ui_world *w)
{
    struct running_scan found = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    w->scanned_ms = clock_monotonic_ms ();
    if (! running_scan (false, &found, &err))
        return;
    if (w->fleet)
        ui_fleet_scan (w->fleet, &found);
    for (size_t i = 0; i < found.len; i++)
        if (found.entries[i].liveness != RUNNING_GONE)
            begin (w, &found.entries[i].record);
    for (size_t i = 0; i < w->len; i++)
        if (w->items[i]->live.is_running && ! is_among (&found, w->items[i]->id))
            end (w, w->items[i]);
    running_scan_free (&found);
}

static void
follow_on (struct ui_session *s, uint64_t now)
{
    if (! ui_follow_is_over (s->live.follow) || now < s->live.again_at_ms)
        return;
    s->live.again_at_ms = now + FOLLOW_MS;
    ui_follow_again (s->live.follow);
}

static void
look (struct ui_world *w)
{
    uint64_t now = clock_monotonic_ms ();
    pthread_mutex_lock (&w->lock);
    if (w->has_notice || now - w->scanned_ms >= SCAN_MS)
        scan (w);
    w->has_notice = false;
    if (now - w->walked_ms >= WALK_MS || ! w->walked_ms) {
        walk (w);
        drop_removed (w);
    }
    for (size_t i = 0; i < w->len; i++)
        if (w->items[i]->live.is_running) {
            ui_follow_tell (w->items[i]->live.follow);
            look_at_trace (w, w->items[i]);
            follow_on (w->items[i], now);
        }
    pthread_mutex_unlock (&w->lock);
}

/* --- asking doors, without the lock --- */

/* One that something changed in. False: none. The strings are the caller's. */
static bool
next_to_ask (struct ui_world *w, char **id, struct ui_door *door)
{
    bool has = false;
    uint64_t now = clock_monotonic_ms ();
    pthread_mutex_lock (&w->lock);
    for (size_t i = 0; i < w->len && ! has; i++) {
        struct ui_session *s = w->items[i];
        if (! s->live.is_running || now < s->live.ask_at_ms ||
            ! (ui_follow_take_change (s->live.follow) || ! s->live.answers))
            continue;
        has = true;
        *id = x_strdup (s->id);
        *door = (struct ui_door){ x_strdup (s->live.url),
                                  s->live.token ? secret_copy (s->live.token) : NULL };
    }
    pthread_mutex_unlock (&w->lock);
    return has;
}

static void
ask (struct ui_world *w)
{
    char *id;
    struct ui_door door;
    while (next_to_ask (w, &id, &door)) {
        _cleanup_json_ json_t *tasks = door_tasks (w->client, door.url, door.token);
        pthread_mutex_lock (&w->lock);
        struct ui_session *s = find (w, id);
        if (s && s->live.is_running) {
            ui_session_take_tasks (s, tasks);
            if (! tasks)
                s->live.ask_at_ms = clock_monotonic_ms () + DEAF_MS;
            tell_session (w, s);
        }
        pthread_mutex_unlock (&w->lock);
        ui_door_clear (&door);
        free (id);
    }
}

static bool
is_closing (struct ui_world *w)
{
    pthread_mutex_lock (&w->lock);
    bool closing = w->is_closing;
    pthread_mutex_unlock (&w->lock);
    return closing;
}

/* Nobody looks: nothing is looked for, but what notices say. */
static void *
run (void *ctx)
{
    struct ui_world *w = ctx;
    while (! is_closing (w)) {
        look (w);
        ask (w);
        sleep_until_next (w, ui_hub_has_readers (w->hub) ? LOOK_MS : -1);
        poll (NULL, 0, SETTLE_MS);
    }
    return NULL;
}

/* --- from outside --- */

static void
watch_running (struct ui_world *w)
{
    int fd = home_open_dir ("running", NULL);
    if (fd >= 0)
        close (fd);
    _cleanup_free_ char *running = home_path_below ("running", NULL);
    if (running)
        w->running_watch =
            inotify_add_watch (w->notify_fd, running, IN_CREATE | IN_MOVED_TO | IN_DELETE);
}

struct ui_world *
ui_world_new (const char *workdir, struct http_client *client, struct ui_hub *hub,
              struct mur_error **err)
{
    _cleanup_ (ui_world_freep) struct ui_world *w = x_new0 (struct ui_world);
    pthread_mutex_init (&w->lock, NULL);
    w->client = client;
    w->hub = hub;
    w->notify_fd = inotify_init1 (IN_CLOEXEC | IN_NONBLOCK);
    w->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->notify_fd < 0 || w->wake_fd < 0) {
        mur_fail_errno (err, E_IO_003, "cannot watch for changes");
        return NULL;
    }
    if (workdir && ! (w->only = home_work_root (workdir, ".", err)))
        return NULL;
    watch_running (w);
    return steal_ptr (&w);
}

void
ui_world_set_fleet (struct ui_world *w, struct ui_fleet *fleet)
{
    w->fleet = fleet;
}

const char *const *
ui_world_words (const struct ui_world *w, const char *id)
{
    return ui_fleet_words (w->fleet, id);
}

bool
ui_world_start (struct ui_world *w, struct mur_error **err)
{
    if (w->fleet && ! ui_fleet_start (w->fleet, w->wake_fd, err))
        return false;
    int failure = pthread_create (&w->thread, NULL, run, w);
    errno = failure;
    w->has_thread = ! failure;
    return w->has_thread || mur_fail_errno (err, E_IO_003, "no thread that looks at sessions");
}

void
ui_world_poke (struct ui_world *w)
{
    uint64_t one = 1;
    (void)! write (w->wake_fd, &one, sizeof one);
}

void
ui_world_free (struct ui_world *w)
{
    if (! w)
        return;
    pthread_mutex_lock (&w->lock);
    w->is_closing = true;
    pthread_mutex_unlock (&w->lock);
    ui_world_poke (w);
    if (w->has_thread)
        pthread_join (w->thread, NULL);
    ui_fleet_free (w->fleet);
    for (size_t i = 0; i < w->len; i++)
        ui_session_free (w->items[i]);
    free (w->items);
    strv_free (&w->unreadable);
    if (w->notify_fd >= 0)
        close (w->notify_fd);
    if (w->wake_fd >= 0)
        close (w->wake_fd);
    pthread_mutex_destroy (&w->lock);
    free (w->only);
    free (w);
}

/* Running ones first, then the newest. */
static json_t *
list (struct ui_world *w, const char *before, size_t limit)
{
    json_t *rows = json_array ();
    size_t from = before ? place_of (w, before) : 0;
    if (before && from < w->len && str_eq (w->items[from]->id, before))
        from++;
    for (size_t i = 0; i < w->len && ! before; i++)
        if (w->items[i]->live.is_running)
            json_array_append_new (rows, ui_session_json (w->items[i]));
    for (; from < w->len && json_array_size (rows) < limit; from++)
        if (! w->items[from]->live.is_running)
            json_array_append_new (rows, ui_session_json (w->items[from]));
    json_t *answer = json_object ();
    json_object_set_new (answer, "sessions", rows);
    json_set_u64 (answer, "total", w->len);
    json_set_u64 (answer, "older", w->len - from);
    json_t *unreadable = json_array ();
    for (size_t i = 0; i < w->unreadable.len; i++)
        json_array_append_new (unreadable, json_string (w->unreadable.items[i]));
    json_object_set_new (answer, "unreadable", unreadable);
    return answer;
}

json_t *
ui_world_sessions (struct ui_world *w, const char *before, size_t limit)
{
    pthread_mutex_lock (&w->lock);
    scan (w);
    walk (w);
    drop_removed (w);
    json_t *answer = list (w, before, limit);
    pthread_mutex_unlock (&w->lock);
    ui_world_poke (w);
    return answer;
}

void
ui_world_ids (struct ui_world *w, struct strv *ids)
{
    pthread_mutex_lock (&w->lock);
    for (size_t i = 0; i < w->len; i++)
        strv_push (ids, w->items[i]->id);
    pthread_mutex_unlock (&w->lock);
}

/* One that came just now is looked for. Under the lock. */
static struct ui_session *
find_or_look (struct ui_world *w, const char *id)
{
    struct ui_session *s = find (w, id);
    if (! s) {
        scan (w);
        walk (w);
        s = find (w, id);
    }
    return s;
}

json_t *
ui_world_session (struct ui_world *w, const char *id)
{
    pthread_mutex_lock (&w->lock);
    struct ui_session *s = find_or_look (w, id);
    json_t *row = s ? ui_session_json (s) : NULL;
    pthread_mutex_unlock (&w->lock);
    return row;
}

bool
ui_world_place (struct ui_world *w, const char *id, struct ui_place *place)
{
    pthread_mutex_lock (&w->lock);
    const struct ui_session *s = find_or_look (w, id);
    if (s)
        *place = (struct ui_place){ x_strdup (s->records_dir), x_strdup (s->trace_path),
                                    x_strdup (s->work_root) };
    pthread_mutex_unlock (&w->lock);
    return s != NULL;
}

void
ui_place_clear (struct ui_place *place)
{
    free (place->records_dir);
    free (place->trace_path);
    free (place->work_root);
}

bool
ui_world_door (struct ui_world *w, const char *id, struct ui_door *door)
{
    pthread_mutex_lock (&w->lock);
    scan (w); /* what has ended since is not asked */
    const struct ui_session *s = find_or_look (w, id);
    bool runs = s && s->live.is_running;
    if (runs)
        *door = (struct ui_door){ x_strdup (s->live.url),
                                  s->live.token ? secret_copy (s->live.token) : NULL };
    pthread_mutex_unlock (&w->lock);
    return runs;
}

void
ui_door_clear (struct ui_door *door)
{
    free (door->url);
    secret_free (door->token);
}

json_t *
ui_world_live (struct ui_world *w, const char *id)
{
    pthread_mutex_lock (&w->lock);
    const struct ui_session *s = find (w, id);
    json_t *live = s && s->live.follow ? ui_follow_live (s->live.follow) : NULL;
    pthread_mutex_unlock (&w->lock);
    return live;
}
