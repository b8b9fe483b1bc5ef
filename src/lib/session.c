/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fdio.h"
#include "client/door_client.h"
#include "lib/credentials.h"
#include "lib/event.h"
#include "lib/request.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READY_MS 180000 /* as a child's */
#define GRACE_MS 25000  /* a session winds down within 20 s */
#define DRAIN_MS 2000   /* for the last events, once the process is gone */

/* Under the lock. */
static void
tell (struct mur_session *s)
{
    s->changes++;
    pthread_cond_broadcast (&s->news);
}

/* Under the lock: until the next change, or <until_ms>. */
static void
wait_for_change (struct mur_session *s, uint64_t until_ms)
{
    uint64_t seen = s->changes;
    pthread_mutex_unlock (&s->lock);
    condition_wait_news (&s->news, &s->lock, &s->changes, &seen, until_ms);
    pthread_mutex_lock (&s->lock);
}

/* --- the stream of events, on the network's thread --- */

static bool
on_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct mur_session *s = ctx;
    (void)id;
    _cleanup_json_ json_t *response = json_loadb (data, len, 0, NULL);
    const json_t *result = json_object_get (response, "result");
    _cleanup_free_ char *text = result ? json_text (result, JSON_TEXT_ORDERED) : NULL;
    struct mur_event *e = text ? event_of_response (result, text, strlen (text)) : NULL;
    if (e)
        event_queue_push (s->events, e);
    return true;
}

/* A door that refuses its operator's token says so once a task is sent. */
static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    (void)ctx;
    (void)status;
    (void)headers;
    (void)header_count;
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct mur_session *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->watch.is_paused = event_queue_is_full (s->events);
    bool is_taken = ! s->watch.is_paused;
    pthread_mutex_unlock (&s->lock);
    if (is_taken)
        (void)sse_feed (&s->watch.parser, data, len, on_event, s);
    return is_taken;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct mur_session *s = ctx;
    (void)failure;
    (void)detail;
    pthread_mutex_lock (&s->lock);
    s->watch.is_over = true;
    tell (s);
    pthread_mutex_unlock (&s->lock);
}

static void
watch_begin (struct mur_session *s)
{
    static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };
    const struct door_subscription d = { .url = s->ready.address,
                                         .token = s->ready.token,
                                         .method = "murmur.WatchSession" };
    s->watch.transfer = door_subscribe (s->client, &d, &events, s);
}

/* --- the process, on the session's thread --- */

static char *
copy (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return x_strdup (text ? text : "");
}

/* The first line of its output says that it is ready, the last how it ended. */
static void
take_line (struct mur_session *s, const char *line)
{
    json_t *object = json_loads (line, 0, NULL);
    pthread_mutex_lock (&s->lock);
    if (! s->is_ready && json_get_string (object, "session_id")) {
        const char *token = json_get_string (json_object_get (object, "tokens"), "operator");
        s->ready =
            (struct session_ready){ .id = copy (object, "session_id"),
                                    .address = copy (object, "url"),
                                    .workdir = copy (object, "workdir"),
                                    .records = copy (object, "records_dir"),
                                    .token = token ? secret_new (token, strlen (token)) : NULL };
        s->is_ready = true;
        tell (s);
    } else if (json_get_string (object, "status")) {
        json_decref (s->result);
        s->result = json_incref (object);
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
                credentials_answer (s->worker.credentials_fd, s->credentials, s->credentials_ctx);
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

static void *
run (void *ctx)
{
    struct mur_session *s = ctx;
    follow (s);
    fd_wait (s->worker.pidfd, POLLIN, -1);
    await_watch (s);
    int status = worker_reap (&s->worker);
    pthread_mutex_lock (&s->lock);
    s->status = status;
    const char *ending = json_get_string (s->result, "status");
    s->ending = x_strdup (ending ? ending : status ? "failed" : "ok");
    s->has_ended = true;
    /* Under the lock: whoever sees that it has ended finds the event, and the other way round. */
    event_queue_close (s->events, event_new (MUR_EVENT_ENDED, s->ending));
    tell (s);
    pthread_mutex_unlock (&s->lock);
    return NULL;
}

/* --- launching --- */

/* False: it neither became ready nor ended in time. */
static bool
await_ready (struct mur_session *s)
{
    uint64_t until_ms = clock_monotonic_ms () + READY_MS;
    pthread_mutex_lock (&s->lock);
    while (! s->is_ready && ! s->has_ended && clock_monotonic_ms () < until_ms)
        wait_for_change (s, until_ms);
    bool is_told = s->is_ready || s->has_ended;
    pthread_mutex_unlock (&s->lock);
    return is_told;
}

static bool
start (struct mur_session *s, const struct mur_request *r, struct mur_error **err)
{
    static const char *const words[] = { "--json", "--readiness-tokens", "--result-line", NULL };
    s->credentials = request_credentials (r, &s->credentials_ctx);
    s->events = event_queue_new (err);
    if (! s->events || ! worker_start (&s->worker, r, words, err))
        return false;
    int fault = pthread_create (&s->thread, NULL, run, s);
    s->has_thread = fault == 0;
    errno = fault;
    return ! fault || mur_fail_errno (err, E_IO_003, "cannot start a thread");
}

struct mur_session *
mur_session_launch (const struct mur_request *r, struct mur_error **err)
{
    struct mur_session *s = x_new0 (struct mur_session);
    pthread_mutex_init (&s->lock, NULL);
    condition_init (&s->news);
    bool is_ok = start (s, r, err);
    if (is_ok && ! await_ready (s))
        is_ok = mur_fail (err, E_IO_003, "the session was not ready within %d s", READY_MS / 1000);
    else if (is_ok && ! s->is_ready)
        is_ok = worker_fail (&s->worker, err);
    if (! is_ok) {
        mur_session_free (s);
        return NULL;
    }
    s->client = http_client_new ();
    if (*s->ready.address)
        watch_begin (s);
    return s;
}

/* --- the end --- */

/* The thread reaps the process: until it has, the descriptor names it and no other. */
static void
send_signal (const struct mur_session *s, int number)
{
    (void)syscall (SYS_pidfd_send_signal, s->worker.pidfd, number, NULL, 0);
}

bool
mur_session_end (struct mur_session *s)
{
    uint64_t until_ms = clock_monotonic_ms () + GRACE_MS;
    bool is_killed = false;
    if (! s->has_thread)
        return true;
    send_signal (s, SIGTERM);
    pthread_mutex_lock (&s->lock);
    while (! s->has_ended) {
        wait_for_change (s, until_ms);
        if (! s->has_ended && ! is_killed && clock_monotonic_ms () >= until_ms) {
            is_killed = true;
            until_ms += GRACE_MS;
            send_signal (s, SIGKILL);
        }
    }
    pthread_mutex_unlock (&s->lock);
    return ! is_killed;
}

static void
ready_clear (struct session_ready *r)
{
    free (r->id);
    free (r->address);
    free (r->workdir);
    free (r->records);
    secret_free (r->token);
}

void
mur_session_free (struct mur_session *s)
{
    if (! s)
        return;
    (void)mur_session_end (s);
    if (s->has_thread)
        pthread_join (s->thread, NULL);
    if (s->watch.transfer)
        http_transfer_release (s->watch.transfer);
    http_client_free (s->client);
    sse_parser_free (&s->watch.parser);
    worker_clear (&s->worker);
    event_queue_free (s->events);
    ready_clear (&s->ready);
    json_decref (s->result);
    free (s->ending);
    pthread_cond_destroy (&s->news);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

/* --- what is known of it --- */

const char *
mur_session_id (const struct mur_session *s)
{
    return s->ready.id;
}

const char *
mur_session_address (const struct mur_session *s)
{
    return s->ready.address;
}

const char *
mur_session_token (const struct mur_session *s)
{
    return s->ready.token ? secret_reveal (s->ready.token) : NULL;
}

const char *
mur_session_workdir (const struct mur_session *s)
{
    return s->ready.workdir;
}

const char *
mur_session_records (const struct mur_session *s)
{
    return s->ready.records;
}

bool
mur_session_is_running (const struct mur_session *s)
{
    return mur_session_status (s) == NULL;
}

const char *
mur_session_status (const struct mur_session *s)
{
    struct mur_session *shared = (struct mur_session *)(uintptr_t)s;
    pthread_mutex_lock (&shared->lock);
    const char *ending = s->has_ended ? s->ending : NULL;
    pthread_mutex_unlock (&shared->lock);
    return ending;
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
    if (! is_known || ! mur_session_status (s))
        return 0;
    return (uint64_t)json_integer_value (json_object_get (s->result, keys[which]));
}

int
mur_session_fd (const struct mur_session *s)
{
    return event_queue_fd (s->events);
}

struct mur_event *
mur_session_next (struct mur_session *s, int64_t timeout_ms)
{
    struct mur_event *e = event_queue_next (s->events, timeout_ms);
    pthread_mutex_lock (&s->lock);
    bool has_room = s->watch.is_paused && ! event_queue_is_full (s->events);
    if (has_room)
        s->watch.is_paused = false;
    pthread_mutex_unlock (&s->lock);
    if (has_room)
        http_transfer_resume (s->watch.transfer);
    return e;
}
