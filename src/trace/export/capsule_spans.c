/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/capsule_spans.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/digest.h"
#include "net/plain_post.h"
#include "trace/export/capsule_span.h"
#include "trace/export/trace_ids.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define SPAN_TIMEOUT_MS 5000
#define QUEUE_MAX       4096
#define COMMAND_SHOWN   200
#define NS_PER_MS       1000000ull
#define LOG_NAME        "logs/otel.log"

struct queued {
    struct queued *next;
    const char *name; /* static */
    char *body;
};

/* What runs now. */
struct running_spans {
    bool is_in_task, has_had_task;
    char trace_id[33], session_span[17];
    char parent[17];      /* of the running task; "" without */
    char next_parent[17]; /* of the task that was received and has not started */
    uint64_t session_start_ns, task_start_ns, work_end_ns;
};

struct capsule_spans {
    struct fs_root *records;
    struct redactor *redactor;
    char *service_name, *service_version;
    char *host, *port, *path; /* host NULL: the endpoint names none */
    char *endpoint;

    pthread_mutex_t lock; /* base/locks.h: a leaf. Guards what is below */
    pthread_cond_t changed;
    struct queued *first, **last;
    size_t queue_len;
    bool is_sending, is_ending, has_thread;
    bool gave_up; /* while ending: the collector does not answer, nothing more is tried */
    pthread_t thread;

    struct running_spans now;
};

static uint64_t
now_ns (void)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* --- the endpoint --- */

/* [scheme://]host:port[/prefix]; whatever the scheme, it is spoken to in plain TCP. */
static void
read_endpoint (struct capsule_spans *o)
{
    const char *scheme = strstr (o->endpoint, "://");
    const char *at = scheme ? scheme + 3 : o->endpoint;
    size_t len = strcspn (at, "/");
    const char *colon = memrchr (at, ':', len);
    size_t digits = colon ? strspn (colon + 1, "0123456789") : 0;
    size_t prefix = strlen (at + len);
    while (prefix && at[len + prefix - 1] == '/')
        prefix--;
    if (! colon || colon == at || ! digits || colon + 1 + digits != at + len)
        return;
    o->host = x_strndup (at, (size_t)(colon - at));
    o->port = x_strndup (colon + 1, digits);
    o->path = x_asprintf ("%.*s/v1/traces", (int)prefix, at + len);
}

/* --- sending --- */

static void
log_failure (struct capsule_spans *o, const char *name, const char *why)
{
    _cleanup_free_ char *line = x_asprintf (
        "[%llu] %s was not sent: %s\n", (unsigned long long)(clock_unix_ms () / 1000), name, why);
    if (fs_make_dirs (o->records, "logs", 0777, false, NULL))
        fs_append (o->records, LOG_NAME, line, strlen (line), NULL);
}

/* False: the collector took it and said nothing in time. */
static bool
send_one (struct capsule_spans *o, const struct queued *q)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (! o->host) {
        _cleanup_free_ char *why =
            x_asprintf ("observability.otel_endpoint %s is not host:port", o->endpoint);
        log_failure (o, q->name, why);
        return true;
    }
    const struct plain_post post = { .host = o->host,
                                     .port = o->port,
                                     .path = o->path,
                                     .content_type = "application/json",
                                     .body = q->body,
                                     .body_len = strlen (q->body),
                                     .timeout_ms = SPAN_TIMEOUT_MS };
    int status = plain_post (&post, &err);
    if (status == 0)
        log_failure (o, q->name, err->message);
    else if (status / 100 != 2) {
        _cleanup_free_ char *why = x_asprintf ("%s:%s answered HTTP %d", o->host, o->port, status);
        log_failure (o, q->name, why);
    }
    return status || err->errno_value != ETIMEDOUT;
}

static void
queued_free (struct queued *q)
{
    free (q->body);
    free (q);
}

/* Under the lock; NULL when the queue is empty. */
static struct queued *
take_first (struct capsule_spans *o)
{
    struct queued *q = o->first;
    if (! q)
        return NULL;
    o->first = q->next;
    if (! o->first)
        o->last = &o->first;
    o->queue_len--;
    return q;
}

static void *
send_all (void *arg)
{
    struct capsule_spans *o = arg;
    pthread_setname_np (pthread_self (), "mur-otel");
    pthread_mutex_lock (&o->lock);
    for (;;) {
        struct queued *q = take_first (o);
        if (! q && o->is_ending)
            break;
        if (! q) {
            pthread_cond_wait (&o->changed, &o->lock);
            continue;
        }
        bool is_tried = ! o->gave_up;
        o->is_sending = true;
        pthread_mutex_unlock (&o->lock);
        bool has_answered = true;
        if (is_tried)
            has_answered = send_one (o, q);
        else
            log_failure (o, q->name, "the session has ended and the collector does not answer");
        queued_free (q);
        pthread_mutex_lock (&o->lock);
        o->is_sending = false;
        o->gave_up |= ! has_answered && o->is_ending;
        pthread_cond_broadcast (&o->changed);
    }
    pthread_mutex_unlock (&o->lock);
    return NULL;
}

/* Takes the span's attributes over. Under the lock. */
static void
emit (struct capsule_spans *o, struct span *s)
{
    char *body = span_body (s, o->service_name, o->service_version);
    if (o->queue_len >= QUEUE_MAX) {
        log_failure (o, s->name, "too many spans wait already");
        free (body);
        return;
    }
    struct queued *q = x_new0 (struct queued);
    q->name = s->name;
    q->body = body;
    *o->last = q;
    o->last = &q->next;
    o->queue_len++;
    if (! o->has_thread)
        o->has_thread = pthread_create (&o->thread, NULL, send_all, o) == 0;
    pthread_cond_broadcast (&o->changed);
}

/* --- spans --- */

static void
mint (char *out, size_t bytes)
{
    unsigned char raw[16];
    random_bytes (raw, bytes);
    hex_encode (raw, bytes, out);
}

/* One below the running task's, of work that ends now. */
static void
emit_work (struct capsule_spans *o, const char *name, uint64_t start_ns, uint64_t end_ns,
           struct span *s)
{
    char span_id[17];
    mint (span_id, 8);
    s->name = name;
    s->trace_id = o->now.trace_id;
    s->span_id = span_id;
    s->parent_id = o->now.session_span;
    s->start_ns = start_ns;
    s->end_ns = end_ns;
    emit (o, s);
}

static void
emit_session (struct capsule_spans *o, uint64_t start_ns, const char *exit_status)
{
    struct span s = { .name = "capsule.session",
                      .trace_id = o->now.trace_id,
                      .span_id = o->now.session_span,
                      .parent_id = o->now.parent[0] ? o->now.parent : NULL,
                      .start_ns = start_ns,
                      .end_ns = now_ns () };
    span_string (&s, o->redactor, "exit_status", exit_status);
    emit (o, &s);
}

static void
on_inference (struct capsule_spans *o, const struct trace_inference *e)
{
    struct span s = { 0 };
    span_int (&s, "turn", (int64_t)e->turn);
    span_maybe_int (&s, "input_tokens", e->input_tokens);
    span_maybe_int (&s, "output_tokens", e->output_tokens);
    span_string (&s, o->redactor, "decision", e->decision);
    span_maybe_string (&s, o->redactor, "stop_reason", e->stop_reason);
    span_maybe_string (&s, o->redactor, "tool_name", e->tool_name);
    span_maybe_int (&s, "input_tokens_actual", e->input_tokens_actual);
    span_maybe_int (&s, "output_tokens_actual", e->output_tokens_actual);
    span_maybe_int (&s, "cached_tokens", e->cached_tokens);
    span_maybe_int (&s, "cache_write_tokens", e->cache_write_tokens);
    span_maybe_int (&s, "thinking_tokens", e->thinking_tokens);
    if (e->origin) {
        span_string (&s, o->redactor, "origin", e->origin);
        span_maybe_string (&s, o->redactor, "model", e->model);
    }
    emit_work (o, "capsule.inference", o->now.work_end_ns, now_ns (), &s);
}

static void
on_tool_call (struct capsule_spans *o, const struct trace_tool_call *e)
{
    struct span s = { 0 };
    uint64_t end = now_ns ();
    span_string (&s, o->redactor, "tool_name", e->tool_name);
    span_int (&s, "input_bytes", (int64_t)e->input_bytes);
    span_int (&s, "output_bytes", (int64_t)e->output_bytes);
    span_int (&s, "duration_ms", (int64_t)e->duration_ms);
    span_string (&s, o->redactor, "status", e->status);
    emit_work (o, "capsule.tool_call", end - e->duration_ms * NS_PER_MS, end, &s);
}

static void
on_shell (struct capsule_spans *o, const struct trace_shell *e)
{
    struct span s = { 0 };
    uint64_t end = now_ns ();
    size_t len = 0;
    for (size_t n = 0; e->command[len] && n < COMMAND_SHOWN; n++)
        do
            len++;
        while (((unsigned char)e->command[len] & 0xc0) == 0x80);
    _cleanup_free_ char *command = x_strndup (e->command, len);
    span_string (&s, o->redactor, "command", command);
    span_maybe_int (&s, "exit_code", e->exit_code);
    span_int (&s, "duration_ms", (int64_t)e->duration_ms);
    emit_work (o, "capsule.shell", end - e->duration_ms * NS_PER_MS, end, &s);
}

static void
on_compaction (struct capsule_spans *o, const struct trace_compaction *e)
{
    struct span s = { 0 };
    uint64_t end = now_ns ();
    span_int (&s, "tokens_before", (int64_t)e->tokens_before);
    span_int (&s, "tokens_after", (int64_t)e->tokens_after);
    emit_work (o, "capsule.compaction", end - NS_PER_MS, end, &s);
}

static void
on_task_start (struct capsule_spans *o)
{
    o->now.is_in_task = o->now.has_had_task = true;
    mint (o->now.trace_id, 16);
    mint (o->now.session_span, 8);
    memcpy (o->now.parent, o->now.next_parent, sizeof o->now.parent);
    o->now.next_parent[0] = '\0';
    o->now.task_start_ns = o->now.work_end_ns = now_ns ();
}

static void
on_session_end (struct capsule_spans *o, const struct trace_session_end *e)
{
    if (o->now.has_had_task)
        return;
    mint (o->now.trace_id, 16);
    mint (o->now.session_span, 8);
    o->now.parent[0] = '\0';
    emit_session (o, o->now.session_start_ns, e->exit_status);
}

/* Work within a task. */
static void
on_work (struct capsule_spans *o, enum trace_event_type event, const void *payload)
{
    if (event == TRACE_EVENT_inference)
        on_inference (o, payload);
    else if (event == TRACE_EVENT_tool_call)
        on_tool_call (o, payload);
    else if (event == TRACE_EVENT_shell)
        on_shell (o, payload);
    else if (event == TRACE_EVENT_compaction)
        on_compaction (o, payload);
    else
        return;
    o->now.work_end_ns = now_ns ();
}

void
capsule_spans_line (struct capsule_spans *o, enum trace_event_type event, const void *payload)
{
    pthread_mutex_lock (&o->lock);
    if (event == TRACE_EVENT_a2a_task_received) {
        const struct trace_a2a_task_received *e = payload;
        struct trace_context caller;
        trace_context_parse (e->traceparent_from_caller, &caller);
        memcpy (o->now.next_parent, caller.span_id, sizeof o->now.next_parent);
    } else if (event == TRACE_EVENT_task_start) {
        on_task_start (o);
    } else if (event == TRACE_EVENT_task_end && o->now.is_in_task) {
        emit_session (o, o->now.task_start_ns,
                      ((const struct trace_task_end *)payload)->exit_status);
        o->now.is_in_task = false;
    } else if (event == TRACE_EVENT_session_end) {
        on_session_end (o, payload);
    } else if (o->now.is_in_task) {
        on_work (o, event, payload);
    }
    pthread_mutex_unlock (&o->lock);
}

/* --- outside --- */

struct capsule_spans *
capsule_spans_new (const struct capsule_spans_spec *spec)
{
    struct capsule_spans *o = x_new0 (struct capsule_spans);
    o->records = spec->records;
    o->redactor = spec->redactor;
    o->service_name = x_strdup (spec->capsule_name);
    o->service_version = x_strdup (spec->capsule_version);
    o->endpoint = x_strdup (spec->endpoint);
    o->last = &o->first;
    o->now.session_start_ns = now_ns ();
    pthread_mutex_init (&o->lock, NULL);
    condition_init (&o->changed);
    read_endpoint (o);
    return o;
}

void
capsule_spans_work_begin (struct capsule_spans *o)
{
    pthread_mutex_lock (&o->lock);
    on_task_start (o);
    pthread_mutex_unlock (&o->lock);
}

void
capsule_spans_work_end (struct capsule_spans *o, const char *exit_status)
{
    pthread_mutex_lock (&o->lock);
    if (o->now.is_in_task)
        emit_session (o, o->now.task_start_ns, exit_status);
    o->now.is_in_task = false;
    pthread_mutex_unlock (&o->lock);
}

bool
capsule_spans_traceparent (struct capsule_spans *o, char out[TRACEPARENT_LEN + 1])
{
    pthread_mutex_lock (&o->lock);
    bool is_in_task = o->now.is_in_task;
    if (is_in_task)
        snprintf (out, TRACEPARENT_LEN + 1, "00-%s-%s-01", o->now.trace_id, o->now.session_span);
    pthread_mutex_unlock (&o->lock);
    return is_in_task;
}

void
capsule_spans_end (struct capsule_spans *o, uint64_t patience_ms)
{
    uint64_t end_ms = clock_monotonic_ms () + patience_ms;
    const struct timespec until = { .tv_sec = (time_t)(end_ms / 1000),
                                    .tv_nsec = (long)(end_ms % 1000) * 1000000 };
    pthread_mutex_lock (&o->lock);
    o->is_ending = true;
    pthread_cond_broadcast (&o->changed);
    while (o->has_thread && (o->first || o->is_sending))
        if (pthread_cond_timedwait (&o->changed, &o->lock, &until) == ETIMEDOUT)
            break;
    o->gave_up = true;
    bool has_thread = o->has_thread;
    pthread_mutex_unlock (&o->lock);
    if (has_thread)
        pthread_join (o->thread, NULL);
    for (struct queued *q; (q = take_first (o));) {
        log_failure (o, q->name, "there was no thread to send it");
        queued_free (q);
    }
    pthread_cond_destroy (&o->changed);
    pthread_mutex_destroy (&o->lock);
    free (o->service_name);
    free (o->service_version);
    free (o->endpoint);
    free (o->host);
    free (o->port);
    free (o->path);
    free (o);
}
