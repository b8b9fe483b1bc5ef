/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/otel.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "trace/export/capsule_spans.h"
#include "trace/export/span_export.h"

#include <pthread.h>
#include <string.h>

#define CALLERS_MAX 1024

/* A task that was received and has not started. */
struct received {
    char task_id[64];
    struct trace_context caller;
};

struct otel {
    struct capsule_spans *capsule; /* one of the two */
    struct span_export *export;

    pthread_mutex_t lock; /* base/locks.h: a leaf. Guards what is below */
    struct received *received;
    size_t received_count, received_cap;
    bool is_in_task;
    struct trace_context running;
};

/* --- the context of the running task --- */

static void
on_received (struct otel *o, const struct trace_a2a_task_received *e)
{
    struct trace_context caller;
    if (o->received_count == CALLERS_MAX ||
        ! trace_context_parse (e->traceparent_from_caller, &caller))
        return;
    x_grow (o->received, o->received_count, o->received_cap);
    struct received *r = &o->received[o->received_count++];
    snprintf (r->task_id, sizeof r->task_id, "%s", e->task_id);
    r->caller = caller;
}

static void
on_start (struct otel *o, const char *event_id, const char *task_id)
{
    struct trace_context caller = { .is_sampled = true };
    for (size_t i = 0; task_id && i < o->received_count; i++)
        if (str_eq (o->received[i].task_id, task_id)) {
            caller = o->received[i].caller;
            o->received[i] = o->received[--o->received_count];
            break;
        }
    trace_context_of_task (event_id, &caller, &o->running);
    o->is_in_task = true;
}

/* Called for each line, under the trace's lock. */
static void
on_line (void *ctx, enum trace_event_type event, const void *payload, const struct trace_line *line)
{
    struct otel *o = ctx;
    if (o->capsule) {
        capsule_spans_line (o->capsule, event, payload);
        return;
    }
    pthread_mutex_lock (&o->lock);
    if (event == TRACE_EVENT_a2a_task_received)
        on_received (o, payload);
    else if (event == TRACE_EVENT_task_start)
        on_start (o, line->event_id, ((const struct trace_task_start *)payload)->task_id);
    else if (event == TRACE_EVENT_task_end)
        o->is_in_task = false;
    pthread_mutex_unlock (&o->lock);
    span_export_line (o->export, line->text, line->len);
}

/* --- outside --- */

struct otel *
otel_new (const struct otel_spec *spec)
{
    struct otel *o = x_new0 (struct otel);
    pthread_mutex_init (&o->lock, NULL);
    const struct otel_settings *s = spec->settings;
    if (s->is_capsule) {
        const struct capsule_spans_spec capsule = { .endpoint = s->capsule_endpoint,
                                                    .capsule_name = spec->capsule_name,
                                                    .capsule_version = spec->capsule_version,
                                                    .records = spec->records,
                                                    .redactor = spec->redactor };
        o->capsule = capsule_spans_new (&capsule);
        return o;
    }
    const struct span_export_spec export = {
        .settings = s,
        .records = spec->records,
        .mapping = { .agent_name = spec->capsule_name,
                     .agent_version = spec->capsule_version,
                     .session_id = spec->session_id,
                     .content = s->content,
                     .sample = s->sample,
                     .sends_pending = s->sends_pending,
                     .records = spec->records,
                     .redactor = spec->redactor },
    };
    o->export = span_export_new (&export);
    return o;
}

void
otel_watch (struct otel *o, struct trace_writer *w)
{
    trace_writer_observe (w, on_line, o);
}

void
otel_chat_begins (struct otel *o)
{
    if (o && o->export)
        span_export_chat_begins (o->export);
}

void
otel_work_begin (struct otel *o)
{
    if (o->capsule) {
        capsule_spans_work_begin (o->capsule);
        return;
    }
    struct id id = id_new ("evt");
    pthread_mutex_lock (&o->lock);
    on_start (o, id.text, NULL);
    pthread_mutex_unlock (&o->lock);
    span_export_work_begins (o->export, id.text);
}

void
otel_work_end (struct otel *o, const char *exit_status)
{
    if (o->capsule) {
        capsule_spans_work_end (o->capsule, exit_status);
        return;
    }
    pthread_mutex_lock (&o->lock);
    o->is_in_task = false;
    pthread_mutex_unlock (&o->lock);
    span_export_work_ends (o->export, exit_status);
}

bool
otel_traceparent (struct otel *o, char out[TRACEPARENT_LEN + 1])
{
    if (! o)
        return false;
    if (o->capsule)
        return capsule_spans_traceparent (o->capsule, out);
    pthread_mutex_lock (&o->lock);
    bool is_in_task = o->is_in_task;
    if (is_in_task)
        trace_context_text (&o->running, out);
    pthread_mutex_unlock (&o->lock);
    return is_in_task;
}

void
otel_end (struct otel *o, uint64_t patience_ms)
{
    if (! o)
        return;
    if (o->capsule)
        capsule_spans_end (o->capsule, patience_ms);
    else
        span_export_end (o->export, patience_ms);
    pthread_mutex_destroy (&o->lock);
    free (o->received);
    free (o);
}
