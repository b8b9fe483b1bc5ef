/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_fleet.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "client/fleet.h"
#include "fs/paths.h"
#include "net/kube/kube_object.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_MS   1500
#define DEAF_MS   10000 /* a door that was not given is not asked for again before */
#define MOST_FAR  2000
#define MOST_PART ((size_t)64 << 20) /* of one trace, in one look */

/* One session that ran when it was looked for. */
struct far {
    char *session, *job, *dir, *name, *version, *spawned_by, *started_at;
    struct fleet_door door;
    uint64_t at; /* bytes of its trace that are copied */
    uint64_t ask_at_ms;
    int fd; /* the copy; -1: its door was not had yet */
    bool is_running;
};

struct ui_fleet {
    struct fleet_view view; /* the thread's, once it runs */
    struct http_client *client;
    struct cancel *cancel;
    char *folder;
    const char *words[6];
    pthread_t thread;
    bool has_thread;
    int wake_fd;
    pthread_mutex_t lock; /* guards what follows; the thread alone changes it */
    struct far **items;
    size_t len, cap;
};

static void
far_free (struct far *s)
{
    free (s->session);
    free (s->job);
    free (s->dir);
    free (s->name);
    free (s->version);
    free (s->spawned_by);
    free (s->started_at);
    fleet_door_clear (&s->door);
    if (s->fd >= 0)
        close (s->fd);
    free (s);
}

/* --- looking, on the thread --- */

static char *
copy_of (const char *text)
{
    return x_strdup (text ? text : "");
}

static struct far *
find (const struct ui_fleet *f, const char *session)
{
    for (size_t i = 0; i < f->len; i++)
        if (str_eq (f->items[i]->session, session))
            return f->items[i];
    return NULL;
}

static struct far *
add (struct ui_fleet *f, const json_t *job)
{
    const char *spawned_by = kube_own_annotation (job, "parent-session");
    struct far *s = x_new0 (struct far);
    s->session = x_strdup (kube_own_annotation (job, "session"));
    s->job = copy_of (fleet_job_meta (job, "name"));
    s->name = copy_of (kube_own_annotation (job, "name"));
    s->version = copy_of (kube_own_annotation (job, "version"));
    s->started_at = copy_of (fleet_job_meta (job, "creationTimestamp"));
    s->spawned_by = spawned_by ? x_strdup (spawned_by) : NULL;
    s->dir = x_asprintf ("%s/%s", f->folder, s->session);
    s->fd = -1;
    pthread_mutex_lock (&f->lock);
    x_grow (f->items, f->len, f->cap);
    f->items[f->len++] = s;
    pthread_mutex_unlock (&f->lock);
    return s;
}

/* Its door, and a place for the copy. */
static void
open_far (struct ui_fleet *f, struct far *s, const json_t *job)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    struct fleet_door door = { 0 };
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", s->dir);
    if (clock_monotonic_ms () < s->ask_at_ms)
        return;
    if (! fleet_door_open (&f->view, job, f->client, &door, &caught)) {
        diag_note ("%s: %s", s->session, caught->message);
        s->ask_at_ms = clock_monotonic_ms () + DEAF_MS;
        return;
    }
    int fd = mkdir (s->dir, 0700) == 0 || errno == EEXIST
                 ? open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                 : -1;
    pthread_mutex_lock (&f->lock);
    s->door = door;
    s->fd = fd;
    s->is_running = fd >= 0;
    pthread_mutex_unlock (&f->lock);
}

/* What was written since. */
static bool
copy_trace (const struct ui_fleet *f, struct far *s)
{
    uint64_t before = s->at, last;
    _cleanup_buf_ struct buf text = { 0 };
    bool is_heard;
    do {
        last = s->at;
        is_heard = fleet_trace_read (f->client, &s->door, &s->at, &text, NULL);
    } while (is_heard && s->at > last && text.len < MOST_PART);
    if (text.len)
        (void)fd_write_all (s->fd, text.data, text.len);
    return s->at > before;
}

static void
wake (const struct ui_fleet *f)
{
    uint64_t one = 1;
    (void)! write (f->wake_fd, &one, sizeof one);
}

static const json_t *
running_job (const struct ui_fleet *f, const char *session)
{
    size_t i;
    json_t *job;
    json_array_foreach (f->view.items, i,
                        job) if (str_eq (kube_own_annotation (job, "session"), session))
    {
        _cleanup_free_ char *state = fleet_job_state (job);
        return str_eq (state, "running") ? job : NULL;
    }
    return NULL;
}

/* A session that is over keeps its copy, and has no door. */
static void
end_far (struct ui_fleet *f, struct far *s)
{
    pthread_mutex_lock (&f->lock);
    s->is_running = false;
    pthread_mutex_unlock (&f->lock);
}

static void
look (struct ui_fleet *f)
{
    size_t i;
    json_t *job;
    bool has_news = false;
    if (! fleet_view_again (&f->view, NULL))
        return;
    json_array_foreach (f->view.items, i, job)
    {
        const char *session = kube_own_annotation (job, "session");
        struct far *s = session ? find (f, session) : NULL;
        if (session && running_job (f, session) && ! s && f->len < MOST_FAR)
            s = add (f, job);
        if (s && s->fd < 0 && running_job (f, session)) {
            open_far (f, s, job);
            has_news |= s->is_running;
        }
    }
    for (i = 0; i < f->len; i++) {
        struct far *s = f->items[i];
        if (! s->is_running)
            continue;
        has_news |= copy_trace (f, s);
        if (running_job (f, s->session))
            continue;
        end_far (f, s);
        has_news = true;
    }
    if (has_news)
        wake (f);
}

static void *
run (void *ctx)
{
    struct ui_fleet *f = ctx;
    do
        look (f);
    while (cancel_sleep (f->cancel, LOOK_MS));
    return NULL;
}

/* --- from outside --- */

struct ui_fleet *
ui_fleet_new (const char *kubeconfig, const char *namespace, struct http_client *client,
              struct mur_error **err)
{
    const char *temporary = getenv ("TMPDIR");
    _cleanup_ (ui_fleet_freep) struct ui_fleet *f = x_new0 (struct ui_fleet);
    const struct {
        const char *name, *value;
    } given[] = { { "--kubeconfig", kubeconfig }, { "--namespace", namespace } };
    size_t words = 0;
    f->words[words++] = "--fleet";
    for (size_t i = 0; i < ARRAY_LEN (given); i++)
        if (given[i].value) {
            f->words[words++] = given[i].name;
            f->words[words++] = given[i].value;
        }
    pthread_mutex_init (&f->lock, NULL);
    f->cancel = cancel_new ();
    f->client = client;
    if (! fleet_view_open (kubeconfig, namespace, &f->view, err))
        return NULL;
    _cleanup_free_ char *folder =
        x_asprintf ("%s/mur-ui-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (! mkdtemp (folder)) {
        mur_fail_errno (err, E_IO_003, "cannot make %s", folder);
        return NULL;
    }
    f->folder = steal_ptr (&folder);
    return steal_ptr (&f);
}

bool
ui_fleet_start (struct ui_fleet *f, int wake_fd, struct mur_error **err)
{
    f->wake_fd = wake_fd;
    int failure = pthread_create (&f->thread, NULL, run, f);
    errno = failure;
    f->has_thread = ! failure;
    return f->has_thread || mur_fail_errno (err, E_IO_003, "no thread that looks at the cluster");
}

void
ui_fleet_free (struct ui_fleet *f)
{
    if (! f)
        return;
    cancel_raise (f->cancel);
    if (f->has_thread)
        pthread_join (f->thread, NULL);
    for (size_t i = 0; i < f->len; i++)
        far_free (f->items[i]);
    free (f->items);
    if (f->folder)
        fs_remove_tree_at (AT_FDCWD, f->folder, NULL);
    fleet_view_clear (&f->view);
    cancel_unref (f->cancel);
    pthread_mutex_destroy (&f->lock);
    free (f->folder);
    free (f);
}

static struct running_entry
entry_of (const struct far *s, const char *folder)
{
    return (struct running_entry){
        .path = x_strdup (""),
        .liveness = RUNNING_HELD,
        .record = {
            .session_id = x_strdup (s->session),
            .url = x_strdup (s->door.url),
            .process_start = x_strdup (""),
            .capsule_name = x_strdup (s->name),
            .capsule_version = x_strdup (s->version),
            .workdir = x_strdup (folder),
            .records_dir = x_strdup (s->dir),
            .started_at = x_strdup (s->started_at),
            .door_token = secret_copy (s->door.token),
            .spawned_by = s->spawned_by ? x_strdup (s->spawned_by) : NULL,
        },
    };
}

void
ui_fleet_scan (struct ui_fleet *f, struct running_scan *scan)
{
    pthread_mutex_lock (&f->lock);
    for (size_t i = 0; i < f->len; i++)
        if (f->items[i]->is_running) {
            scan->entries = x_reallocarray (scan->entries, scan->len + 1, sizeof *scan->entries);
            scan->entries[scan->len++] = entry_of (f->items[i], f->folder);
        }
    pthread_mutex_unlock (&f->lock);
}

const char *const *
ui_fleet_words (struct ui_fleet *f, const char *id)
{
    static const char *const none[] = { NULL };
    if (! f)
        return none;
    pthread_mutex_lock (&f->lock);
    bool is_far = find (f, id) != NULL;
    pthread_mutex_unlock (&f->lock);
    return is_far ? f->words : none;
}
