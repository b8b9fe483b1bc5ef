/* SPDX-License-Identifier: Apache-2.0
 *
 * A session from its launch to its end: the process, what it says, and who waits for it.
 */
#include "lib/session_state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fdio.h"
#include "base/thread.h"
#include "lib/credentials.h"
#include "lib/event.h"
#include "lib/request.h"
#include "lib/session_events.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define READY_MS 180000 /* as a child's */
#define GRACE_MS 25000  /* a session winds down within 20 s */
#define DRAIN_MS 2000   /* for the last events, once the process is gone */

/* Under the lock: until the next change, or <until_ms>. */
static void
wait_for_change (struct mur_session *s, uint64_t until_ms)
{
    uint64_t seen = s->changes;
    pthread_mutex_unlock (&s->lock);
    condition_wait_news (&s->news, &s->lock, &s->changes, &seen, until_ms);
    pthread_mutex_lock (&s->lock);
}

/* --- the process, on the session's thread --- */

static char *
copy (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return x_strdup (text ? text : "");
}

static void
take_ready (struct session_ready *r, const json_t *object)
{
    json_t *tokens = json_object_get (object, "tokens"), *token;
    const char *name;
    *r = (struct session_ready){ .id = copy (object, "session_id"),
                                 .address = copy (object, "url"),
                                 .workdir = copy (object, "workdir"),
                                 .records = copy (object, "records_dir"),
                                 .tokens =
                                     x_new_array (struct secret *, json_object_size (tokens)) };
    json_object_foreach (tokens, name, token)
    {
        const char *text = json_string_value (token);
        if (! text)
            continue;
        r->tokens[r->names.len] = secret_new (text, strlen (text));
        strv_push (&r->names, name);
    }
}

/* The first line of its output says that it is ready, the last how it ended; a session that never
 * was ready has only that. */
static void
take_line (struct mur_session *s, const char *line)
{
    json_t *object = json_loads (line, 0, NULL);
    pthread_mutex_lock (&s->lock);
    if (json_get_string (object, "status")) {
        json_decref (s->end.result);
        s->end.result = json_incref (object);
    } else if (! s->is_ready && json_get_string (object, "session_id")) {
        take_ready (&s->ready, object);
        s->is_ready = true;
        session_tell (s);
    }
    pthread_mutex_unlock (&s->lock);
    json_decref (object);
}

static bool
take_output (struct mur_session *s)
{
    bool goes_on = worker_read (s->worker.out_fd, &s->worker.out);
    char *line;
    while ((line = worker_line (&s->worker.out))) {
        take_line (s, line);
        secret_wipe (line, strlen (line)); /* the first has the door's token */
        free (line);
    }
    return goes_on;
}

static bool
take_errors (struct mur_session *s)
{
    bool goes_on = worker_read (s->worker.errors_fd, &s->worker.errors);
    char *line;
    while ((line = worker_line (&s->worker.errors))) {
        worker_note (&s->worker, line);
        /* A reader that far behind wants no lines. */
        if (! event_queue_is_full (s->events))
            event_queue_push (s->events, event_new (MUR_EVENT_LOG, line));
        free (line);
    }
    return goes_on;
}

/* Until all its streams have ended. */
static void
follow (struct mur_session *s)
{
    bool is_out = true, is_errors = true, asks = s->worker.credentials_fd >= 0;
    while (is_out || is_errors) {
        struct pollfd fds[] = { { is_out ? s->worker.out_fd : -1, POLLIN, 0 },
                                { is_errors ? s->worker.errors_fd : -1, POLLIN, 0 },
                                { asks ? s->worker.credentials_fd : -1, POLLIN, 0 },
                                { s->worker.pidfd, POLLIN, 0 } };
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            return;
        if (fds[0].revents)
            is_out = take_output (s);
        if (fds[1].revents)
            is_errors = take_errors (s);
        if (fds[2].revents)
            asks =
                credentials_answer (s->worker.credentials_fd, s->credentials, s->credentials_ctx) &&
                ! s->is_let_go;
        /* Something of its may live on and hold its streams. */
        if (fds[3].revents && ! fds[0].revents && ! fds[1].revents)
            return;
    }
}

/* The door's last events come before the end of all. */
static void
await_watch (struct mur_session *s)
{
    uint64_t until_ms = clock_monotonic_ms () + DRAIN_MS;
    pthread_mutex_lock (&s->lock);
    while (s->watch.transfer && ! s->watch.is_over && ! s->watch.is_paused &&
           clock_monotonic_ms () < until_ms)
        wait_for_change (s, until_ms);
    pthread_mutex_unlock (&s->lock);
}

static void
ready_clear (struct session_ready *r)
{
    free (r->id);
    free (r->address);
    free (r->workdir);
    free (r->records);
    for (size_t i = 0; i < r->names.len; i++)
        secret_free (r->tokens[i]);
    free (r->tokens);
    strv_free (&r->names);
}

static void
release (struct mur_session *s)
{
    if (s->has_thread && ! s->is_let_go)
        pthread_join (s->thread, NULL);
    session_events_end (s);
    http_client_free (s->client);
    worker_clear (&s->worker);
    event_queue_free (s->events);
    ready_clear (&s->ready);
    free (s->answer);
    json_decref (s->end.result);
    free (s->end.ending);
    mur_error_free (s->end.error);
    pthread_cond_destroy (&s->news);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

static void *
run (void *ctx)
{
    struct mur_session *s = ctx;
    follow (s);
    if (s->worker.pidfd >= 0)
        fd_wait (s->worker.pidfd, POLLIN, -1);
    await_watch (s);
    int status = worker_reap (&s->worker);
    pthread_mutex_lock (&s->lock);
    const char *ending = json_get_string (s->end.result, "status");
    s->end.status = status;
    s->end.ending = x_strdup (ending ? ending : status ? "failed" : "ok");
    bool is_well = status == 0 || (status < 0 && str_eq (ending, "ok"));
    if (! s->is_ready || ! is_well)
        (void)worker_fail (&s->worker, status, s->is_ready, &s->end.error);
    s->end.has_ended = true;
    /* Under the lock: whoever sees that it has ended finds the event, and the other way round. */
    event_queue_close (s->events, event_new (MUR_EVENT_ENDED, s->end.ending));
    session_tell (s);
    pthread_mutex_unlock (&s->lock);
    if (s->is_let_go)
        release (s);
    return NULL;
}

/* --- launching --- */

/* False: it neither became ready nor ended in time. */
static bool
await_ready (struct mur_session *s)
{
    uint64_t until_ms = clock_monotonic_ms () + READY_MS;
    pthread_mutex_lock (&s->lock);
    while (! s->is_ready && ! s->end.has_ended && clock_monotonic_ms () < until_ms)
        wait_for_change (s, until_ms);
    bool is_told = s->is_ready || s->end.has_ended;
    pthread_mutex_unlock (&s->lock);
    return is_told;
}

static bool
start (struct mur_session *s, const struct mur_request *r, struct mur_error **err)
{
    size_t task_len;
    const char *const words[] = { "--json", "--readiness-tokens", "--result-line",
                                  request_task (r, &task_len) ? "--await-watcher" : NULL, NULL };
    s->credentials = request_credentials (r, &s->credentials_ctx);
    s->calls.fn = request_events (r, &s->calls.ctx);
    s->events = event_queue_new (err);
    if (! s->events || ! worker_start (&s->worker, r, words, err))
        return false;
    http_client_load (); /* while it starts; never on a thread of ours while the host forks */
    int fault = thread_start (&s->thread, run, s);
    s->has_thread = fault == 0;
    errno = fault;
    return ! fault || mur_fail_errno (err, E_IO_003, "cannot start a thread");
}

struct mur_session *
mur_session_launch (const struct mur_request *r, struct mur_error **err)
{
    if (! request_check (r, err))
        return NULL;
    struct mur_session *s = x_new0 (struct mur_session);
    s->owner = getpid ();
    s->worker = WORKER_NONE; /* before anything can fail: 0 is a descriptor of the host's */
    pthread_mutex_init (&s->lock, NULL);
    condition_init (&s->news);
    bool is_ok = start (s, r, err);
    if (is_ok && ! await_ready (s))
        is_ok = mur_fail (err, E_IO_003, "the session was not ready within %d s", READY_MS / 1000);
    else if (is_ok && ! s->is_ready)
        is_ok = mur_propagate (err, steal_ptr (&s->end.error));
    if (! is_ok) {
        mur_session_free (s);
        return NULL;
    }
    s->client = http_client_new ();
    if (session_events_begin (s, err))
        return s;
    mur_session_free (s);
    return NULL;
}

/* --- the end --- */

bool
mur_session_end (struct mur_session *s)
{
    uint64_t until_ms = clock_monotonic_ms () + GRACE_MS;
    bool is_killed = false;
    if (! session_is_ours (s) || ! s->has_thread)
        return true;
    worker_signal (&s->worker, SIGTERM);
    if (pthread_equal (s->thread, pthread_self ()))
        return false; /* called while it asks for a key: it cannot end before it has the answer */
    pthread_mutex_lock (&s->lock);
    while (! s->end.has_ended) {
        wait_for_change (s, until_ms);
        if (clock_monotonic_ms () < until_ms)
            continue;
        until_ms = clock_monotonic_ms () + GRACE_MS;
        if (s->end.has_ended)
            break;
        is_killed = true;
        worker_signal (&s->worker, SIGKILL);
    }
    pthread_mutex_unlock (&s->lock);
    return ! is_killed;
}

/* A fork has no threads of ours, and whatever they locked stays locked: only what would keep the
 * session from seeing its launcher's death is let go. */
static void
forget (struct mur_session *s)
{
    worker_close (&s->worker);
    if (s->events)
        close (event_queue_fd (s->events));
}

void
mur_session_free (struct mur_session *s)
{
    if (! s)
        return;
    if (! session_is_ours (s)) {
        forget (s);
        return;
    }
    (void)mur_session_end (s);
    if (s->has_thread && pthread_equal (s->thread, pthread_self ())) {
        s->is_let_go = true; /* by its callback for keys: when that has returned and all is over */
        pthread_detach (s->thread);
        return;
    }
    if (! session_events_is_calling (s)) {
        release (s);
        return;
    }
    s->calls.release = release;
    pthread_detach (s->calls.thread);
}

/* --- what is known of it --- */

const char *
mur_session_id (const struct mur_session *s)
{
    return s ? s->ready.id : NULL;
}

const char *
mur_session_address (const struct mur_session *s)
{
    return s ? s->ready.address : NULL;
}

const char *
mur_session_token (const struct mur_session *s)
{
    return mur_session_token_of (s, "operator");
}

const char *
mur_session_token_of (const struct mur_session *s, const char *name)
{
    const struct secret *token = s && name ? session_token (s, name) : NULL;
    return token ? secret_reveal (token) : NULL;
}

const char *
mur_session_workdir (const struct mur_session *s)
{
    return s ? s->ready.workdir : NULL;
}

const char *
mur_session_records (const struct mur_session *s)
{
    return s ? s->ready.records : NULL;
}

bool
mur_session_is_running (const struct mur_session *s)
{
    return session_is_ours (s) && mur_session_status (s) == NULL;
}

/* What is written once, at the end, is read like this from then on. */
static const struct session_end *
end_of (const struct mur_session *s)
{
    struct mur_session *shared = (struct mur_session *)(uintptr_t)s;
    if (! session_is_ours (s))
        return NULL;
    pthread_mutex_lock (&shared->lock);
    bool has_ended = s->end.has_ended;
    pthread_mutex_unlock (&shared->lock);
    return has_ended ? &s->end : NULL;
}

const char *
mur_session_status (const struct mur_session *s)
{
    const struct session_end *end = end_of (s);
    return end ? end->ending : NULL;
}

const struct mur_error *
mur_session_error (const struct mur_session *s)
{
    const struct session_end *end = end_of (s);
    return end ? end->error : NULL;
}

char *
mur_session_result (const struct mur_session *s)
{
    struct mur_session *shared = (struct mur_session *)(uintptr_t)s;
    if (! session_is_ours (s))
        return NULL;
    pthread_mutex_lock (&shared->lock);
    char *answer = s->answer ? x_strdup (s->answer) : NULL;
    pthread_mutex_unlock (&shared->lock);
    return answer;
}

uint64_t
mur_session_total (const struct mur_session *s, enum mur_total which)
{
    static const char *const keys[] = {
        [MUR_TOTAL_TURNS] = "turns",
        [MUR_TOTAL_INPUT_TOKENS] = "input_tokens",
        [MUR_TOTAL_OUTPUT_TOKENS] = "output_tokens",
        [MUR_TOTAL_DURATION_MS] = "duration_ms",
    };
    bool is_known = which >= MUR_TOTAL_TURNS && which <= MUR_TOTAL_DURATION_MS;
    const struct session_end *end = is_known ? end_of (s) : NULL;
    return end ? (uint64_t)json_integer_value (json_object_get (end->result, keys[which])) : 0;
}
