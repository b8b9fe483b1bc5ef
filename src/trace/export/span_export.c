/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/span_export.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/version.h"
#include "trace/export/otlp_post.h"

#include <pthread.h>
#include <string.h>

#define QUEUE_LIMIT_BYTES (16u << 20)
#define BATCH_SPANS       512
#define BATCH_AGE_MS      1000
#define METRICS_PERIOD_MS 60000
#define PATIENCE_MS       30000
#define LOG_PERIOD_MS     60000
#define LOG_NAME          "logs/otel.log"
#define NS_PER_MS         1000000ull

enum entry_kind {
    ENTRY_LINE,
    ENTRY_CHAT_BEGINS,
    ENTRY_WORK_BEGINS,
    ENTRY_WORK_ENDS,
};

struct entry {
    struct entry *next;
    enum entry_kind kind;
    uint64_t time_ms;
    size_t len;
    char text[];
};

/* What is told about, each at most once a minute. */
enum trouble {
    TROUBLE_SENDING,
    TROUBLE_PARTIAL,
    TROUBLE_QUEUE,
    TROUBLE_METRICS,
    TROUBLE_COUNT,
};

struct span_export {
    const struct otel_settings *settings;
    struct fs_root *records;
    struct cancel *stop, *hurry;
    uint64_t start_ns;

    pthread_mutex_t lock; /* base/locks.h: a leaf. Guards what is up to the next blank line */
    pthread_cond_t changed;
    struct entry *first, **last;
    size_t queued_bytes, dropped;
    bool is_ending, has_thread, has_ended;
    pthread_t thread;

    /* The thread's own. */
    struct gen_ai *mapping;
    struct telemetry_source source;
    struct http_client *http;
    struct telemetry_span **spans;
    size_t span_count, span_cap;
    uint64_t batch_since_ms, metrics_at_ms;
    bool are_metrics_off;
    struct {
        struct {
            size_t lost;
            char *why; /* the first of them; NULL while nothing is lost */
        } of[TROUBLE_COUNT];
        uint64_t next_ms;
    } troubles;
};

/* --- the log --- */

/* One line of all that was lost since the last, with the first cause of each kind. */
static void
write_troubles (struct span_export *e)
{
    static const char *const what[] = {
        [TROUBLE_SENDING] = "spans were not sent",
        [TROUBLE_PARTIAL] = "spans were sent, but",
        [TROUBLE_QUEUE] = "lines of the trace found the queue full",
        [TROUBLE_METRICS] = "bodies of metrics were not sent",
    };
    _cleanup_buf_ struct buf line = { 0 };
    for (enum trouble t = 0; t < TROUBLE_COUNT; t++)
        if (e->troubles.of[t].lost) {
            buf_printf (&line, "%s%zu %s: %s", line.len ? "; " : "", e->troubles.of[t].lost,
                        what[t], e->troubles.of[t].why);
            e->troubles.of[t].lost = 0;
            free (e->troubles.of[t].why);
            e->troubles.of[t].why = NULL;
        }
    _cleanup_free_ char *stamped =
        x_asprintf ("[%llu] %s\n", (unsigned long long)(clock_unix_ms () / 1000), line.data);
    if (fs_make_dirs (e->records, "logs", 0777, false, NULL))
        fs_append (e->records, LOG_NAME, stamped, strlen (stamped), NULL);
}

/* Tells of trouble at once, and of what comes within the minute after it in the line after that: a
 * collector that is gone costs a short session two lines. */
static void
tell (struct span_export *e, enum trouble which, size_t lost, const char *why)
{
    uint64_t now = clock_monotonic_ms ();
    e->troubles.of[which].lost += lost;
    if (! e->troubles.of[which].why)
        e->troubles.of[which].why = x_strdup (why);
    if (now < e->troubles.next_ms)
        return;
    write_troubles (e);
    e->troubles.next_ms = now + LOG_PERIOD_MS;
}

/* What was not told because its minute had not passed. */
static void
tell_rest (struct span_export *e)
{
    for (enum trouble t = 0; t < TROUBLE_COUNT; t++)
        if (e->troubles.of[t].lost) {
            write_troubles (e);
            return;
        }
}

/* --- sending --- */

static enum otlp_fate
post (struct span_export *e, const char *url, const struct otlp_writer *w, char **why)
{
    if (! e->http)
        e->http = http_client_new ();
    const struct otlp_post p = { .http = e->http,
                                 .settings = e->settings,
                                 .url = url,
                                 .body = w->out.data,
                                 .body_len = w->out.len,
                                 .patience_ms = PATIENCE_MS,
                                 .cancel = e->stop,
                                 .hurry = e->hurry };
    return otlp_post (&p, why);
}

static void
send_spans (struct span_export *e)
{
    if (! e->span_count)
        return;
    struct otlp_writer w = { .encoding = e->settings->encoding };
    _cleanup_free_ char *why = NULL;
    telemetry_encode_spans (&w, &e->source, e->spans, e->span_count);
    if (post (e, e->settings->traces_url, &w, &why) != OTLP_SENT)
        tell (e, TROUBLE_SENDING, e->span_count, why ? why : "no answer");
    else if (why)
        tell (e, TROUBLE_PARTIAL, e->span_count, why);
    buf_free (&w.out);
    for (size_t i = 0; i < e->span_count; i++)
        span_free (e->spans[i]);
    e->span_count = 0;
}

static void
send_metrics (struct span_export *e)
{
    if (e->are_metrics_off || ! e->settings->metrics_url)
        return;
    const struct gen_ai_metrics *m = gen_ai_metrics_of (e->mapping);
    struct otlp_writer w = { .encoding = e->settings->encoding };
    _cleanup_free_ char *why = NULL;
    telemetry_encode_metrics (&w, &e->source, m->metrics, GEN_AI_METRIC_COUNT, e->start_ns,
                              clock_unix_ms () * NS_PER_MS);
    enum otlp_fate fate = post (e, e->settings->metrics_url, &w, &why);
    if (fate == OTLP_UNKNOWN) {
        e->are_metrics_off = true;
        tell (e, TROUBLE_METRICS, 1, "the collector takes none; no more are sent");
    } else if (fate != OTLP_SENT) {
        tell (e, TROUBLE_METRICS, 1, why ? why : "no answer");
    }
    buf_free (&w.out);
}

static void
on_span (void *ctx, struct telemetry_span *span)
{
    struct span_export *e = ctx;
    if (! e->span_count)
        e->batch_since_ms = clock_monotonic_ms ();
    x_grow (e->spans, e->span_count, e->span_cap);
    e->spans[e->span_count++] = span;
    if (e->span_count >= BATCH_SPANS)
        send_spans (e);
}

/* --- the thread --- */

static void
map_entry (struct span_export *e, const struct entry *entry)
{
    _cleanup_json_ json_t *line = NULL;
    switch (entry->kind) {
    case ENTRY_LINE:
        line = json_loadb (entry->text, entry->len, 0, NULL);
        if (line)
            gen_ai_line (e->mapping, line);
        break;
    case ENTRY_CHAT_BEGINS:
        gen_ai_chat_begins (e->mapping, entry->time_ms);
        break;
    case ENTRY_WORK_BEGINS:
        gen_ai_work_begins (e->mapping, entry->text, entry->time_ms);
        break;
    case ENTRY_WORK_ENDS:
        gen_ai_work_ends (e->mapping, entry->text, entry->time_ms);
        break;
    }
}

/* When something is due although no line comes: a batch that grows old, metrics. */
static uint64_t
due_ms (const struct span_export *e)
{
    uint64_t metrics = e->metrics_at_ms;
    return e->span_count && e->batch_since_ms + BATCH_AGE_MS < metrics
               ? e->batch_since_ms + BATCH_AGE_MS
               : metrics;
}

/* Everything that is queued; waits for it until something is due. NULL then, and at the end. */
static struct entry *
take_entries (struct span_export *e, bool *is_ending, size_t *dropped)
{
    uint64_t due = due_ms (e);
    const struct timespec until = { (time_t)(due / 1000), (long)(due % 1000) * 1000000 };
    pthread_mutex_lock (&e->lock);
    while (! e->first && ! e->is_ending)
        if (pthread_cond_timedwait (&e->changed, &e->lock, &until) == ETIMEDOUT)
            break;
    struct entry *all = e->first;
    e->first = NULL;
    e->last = &e->first;
    e->queued_bytes = 0;
    *is_ending = e->is_ending;
    *dropped = e->dropped;
    e->dropped = 0;
    pthread_mutex_unlock (&e->lock);
    return all;
}

static void
send_due (struct span_export *e)
{
    uint64_t now = clock_monotonic_ms ();
    if (e->span_count && now >= e->batch_since_ms + BATCH_AGE_MS)
        send_spans (e);
    if (now >= e->metrics_at_ms) {
        send_metrics (e);
        e->metrics_at_ms = clock_monotonic_ms () + METRICS_PERIOD_MS;
    }
}

static void *
export_all (void *arg)
{
    struct span_export *e = arg;
    bool is_ending = false;
    pthread_setname_np (pthread_self (), "mur-otel");
    while (! is_ending) {
        size_t dropped;
        struct entry *all = take_entries (e, &is_ending, &dropped);
        for (struct entry *next; all; all = next) {
            next = all->next;
            map_entry (e, all);
            free (all);
        }
        if (dropped)
            tell (e, TROUBLE_QUEUE, dropped, "their spans are missing");
        if (! is_ending)
            send_due (e);
    }
    gen_ai_end (e->mapping);
    send_spans (e);
    send_metrics (e);
    tell_rest (e);
    pthread_mutex_lock (&e->lock);
    e->has_ended = true;
    pthread_cond_broadcast (&e->changed);
    pthread_mutex_unlock (&e->lock);
    return NULL;
}

/* --- outside --- */

static void
enqueue (struct span_export *e, enum entry_kind kind, const char *text, size_t len)
{
    struct entry *entry = x_malloc (sizeof *entry + len + 1);
    *entry = (struct entry){ .kind = kind, .time_ms = clock_unix_ms (), .len = len };
    memcpy (entry->text, text, len);
    entry->text[len] = '\0';
    pthread_mutex_lock (&e->lock);
    if (e->queued_bytes + len > QUEUE_LIMIT_BYTES) {
        e->dropped++;
        free (entry);
    } else {
        *e->last = entry;
        e->last = &entry->next;
        e->queued_bytes += len;
    }
    if (! e->has_thread)
        e->has_thread = pthread_create (&e->thread, NULL, export_all, e) == 0;
    pthread_cond_broadcast (&e->changed);
    pthread_mutex_unlock (&e->lock);
}

void
span_export_line (struct span_export *e, const char *line, size_t len)
{
    enqueue (e, ENTRY_LINE, line, len);
}

void
span_export_chat_begins (struct span_export *e)
{
    enqueue (e, ENTRY_CHAT_BEGINS, "", 0);
}

void
span_export_work_begins (struct span_export *e, const char *event_id)
{
    enqueue (e, ENTRY_WORK_BEGINS, event_id, strlen (event_id));
}

void
span_export_work_ends (struct span_export *e, const char *exit_status)
{
    enqueue (e, ENTRY_WORK_ENDS, exit_status, strlen (exit_status));
}

void
span_export_source (const struct otel_settings *settings, const struct gen_ai_spec *mapping,
                    struct telemetry_source *out)
{
    *out = (struct telemetry_source){ .scope_version = MUR_VERSION };
    struct attributes *a = &out->resource;
    for (size_t i = 0; i < settings->resource.len; i++)
        attributes_string_named (a, settings->resource.items[i].key,
                                 settings->resource.items[i].text);
    attributes_string (a, "service.name", mapping->agent_name);
    attributes_string (a, "service.version", mapping->agent_version);
    attributes_string (a, "service.instance.id", mapping->session_id);
    attributes_string (a, "telemetry.sdk.name", "murmur");
    attributes_string (a, "telemetry.sdk.language", "c");
    attributes_string (a, "telemetry.sdk.version", MUR_VERSION);
    attributes_string (a, "openinference.project.name", mapping->agent_name);
}

struct span_export *
span_export_new (const struct span_export_spec *spec)
{
    struct span_export *e = x_new0 (struct span_export);
    struct gen_ai_spec mapping = spec->mapping;
    mapping.emit = on_span;
    mapping.ctx = e;
    e->settings = spec->settings;
    e->records = spec->records;
    e->last = &e->first;
    e->stop = cancel_new ();
    e->hurry = cancel_new ();
    e->start_ns = clock_unix_ms () * NS_PER_MS;
    e->metrics_at_ms = clock_monotonic_ms () + METRICS_PERIOD_MS;
    e->mapping = gen_ai_new (&mapping);
    span_export_source (spec->settings, &mapping, &e->source);
    pthread_mutex_init (&e->lock, NULL);
    condition_init (&e->changed);
    return e;
}

/* The thread's end, or <patience_ms>; then whatever it sends is broken off. */
static void
end_thread (struct span_export *e, uint64_t patience_ms)
{
    uint64_t end_ms = clock_monotonic_ms () + patience_ms;
    const struct timespec until = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
    pthread_mutex_lock (&e->lock);
    e->is_ending = true;
    pthread_cond_broadcast (&e->changed);
    bool has_thread = e->has_thread;
    pthread_mutex_unlock (&e->lock);
    if (! has_thread)
        return;
    cancel_raise (e->hurry);
    pthread_mutex_lock (&e->lock);
    while (! e->has_ended)
        if (pthread_cond_timedwait (&e->changed, &e->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock (&e->lock);
    cancel_raise (e->stop);
    pthread_join (e->thread, NULL);
}

void
span_export_end (struct span_export *e, uint64_t patience_ms)
{
    end_thread (e, patience_ms);
    for (struct entry *next; e->first; e->first = next) {
        next = e->first->next;
        free (e->first);
    }
    http_client_free (e->http);
    gen_ai_free (e->mapping);
    attributes_free (&e->source.resource);
    free (e->spans);
    cancel_unref (e->stop);
    cancel_unref (e->hurry);
    pthread_cond_destroy (&e->changed);
    pthread_mutex_destroy (&e->lock);
    free (e);
}
