/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_follow.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "client/door_client.h"
#include "door/card/card.h"
#include "net/http_client.h"
#include "net/sse.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define KEPT_TEXT ((size_t)128 << 10)
#define TELL_MS   40 /* a model writes word by word: so much of it is one event */

/* What is written in one turn: {text} pieces add up from `at`, so a page that has some of it knows
 * what is new to it. */
struct flowing {
    const char *kind; /* of the event */
    struct buf kept;
    struct buf fresh; /* not told yet */
    uint64_t at;      /* bytes told, also of what is not kept */
};

struct ui_follow {
    struct http_client *client;
    struct ui_hub *hub;
    char *session_id, *url;
    struct secret *token;
    int wake_fd;
    struct http_transfer *transfer;

    pthread_mutex_t lock;
    bool is_over, has_change, is_fresh; /* is_fresh: the next frame begins a new turn's text */
    struct sse_parser parser;
    char last_id[24];
    uint64_t run; /* counts the texts of turns */
    uint64_t told_ms;
    struct flowing text, thinking;
    json_t *calls; /* names of calls being written */
};

static void
wake (const struct ui_follow *f)
{
    uint64_t one = 1;
    (void)! write (f->wake_fd, &one, sizeof one);
}

static json_t *
event_of (const struct ui_follow *f)
{
    json_t *event = json_object ();
    json_set_string (event, "session", f->session_id);
    json_set_u64 (event, "run", f->run);
    return event;
}

static void
tell_flow (struct ui_follow *f, struct flowing *flow)
{
    if (! flow->fresh.len)
        return;
    json_t *event = event_of (f);
    json_set_u64 (event, "at", flow->at);
    json_set_string_n (event, "text", flow->fresh.data, flow->fresh.len);
    flow->at += flow->fresh.len;
    buf_truncate (&flow->fresh, 0);
    ui_hub_publish (f->hub, flow->kind, event);
}

static void
tell_all (struct ui_follow *f)
{
    f->told_ms = clock_monotonic_ms ();
    tell_flow (f, &f->thinking);
    tell_flow (f, &f->text);
}

static void
begin_run (struct ui_follow *f)
{
    tell_all (f);
    f->run++;
    f->is_fresh = false;
    f->text.at = f->thinking.at = 0;
    buf_truncate (&f->text.kept, 0);
    buf_truncate (&f->thinking.kept, 0);
    json_array_clear (f->calls);
}

/* The first words are told at once; those right behind them together, by ui_follow_tell. */
static void
take_flow (struct ui_follow *f, struct flowing *flow, const char *text)
{
    size_t len = text ? strlen (text) : 0;
    if (! len)
        return;
    if (flow->kept.len + len <= KEPT_TEXT)
        buf_append (&flow->kept, text, len);
    bool was_told = ! flow->fresh.len;
    buf_append (&flow->fresh, text, len);
    if (clock_monotonic_ms () - f->told_ms >= TELL_MS)
        tell_all (f);
    else if (was_told)
        wake (f);
}

static void
take_call (struct ui_follow *f, const json_t *frame)
{
    const char *name = json_get_string (frame, "toolName");
    tell_all (f);
    json_t *event = event_of (f);
    json_set_string (event, "tool", name ? name : "");
    json_array_append_new (f->calls, json_string (name ? name : ""));
    ui_hub_publish (f->hub, "calling", event);
}

/* A turn's text is over when the runtime says so; its calls end with what they came to. What is
 * written after either belongs to the next. */
static void
take_frame (struct ui_follow *f, const json_t *frame)
{
    const char *kind = json_get_string (frame, "frame");
    bool is_text = str_eq (kind, "text"), is_thinking = str_eq (kind, "thinking");
    bool is_call = str_eq (kind, "tool-call-started");
    if (f->is_fresh && (is_text || is_thinking || is_call))
        begin_run (f);
    if (is_text)
        take_flow (f, &f->text, json_get_string (frame, "text"));
    else if (is_thinking)
        take_flow (f, &f->thinking, json_get_string (frame, "text"));
    else if (is_call)
        take_call (f, frame);
    else if (str_eq (kind, "artifact"))
        f->is_fresh = true;
    else if (str_eq (kind, "lagged") && ! f->is_fresh)
        take_flow (f, &f->text, "\n[some of it came faster than it could be shown]\n");
}

static bool
on_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct ui_follow *f = ctx;
    _cleanup_json_ json_t *answer = json_loadb (data, len, 0, NULL);
    const json_t *result = json_object_get (answer, "result");
    const json_t *update = json_object_get (result, "statusUpdate");
    const json_t *message = json_object_get (result, "message");
    const json_t *frame =
        json_object_get (json_object_get (update ? update : message, "metadata"), CARD_STREAM_URI);
    if (*id)
        snprintf (f->last_id, sizeof f->last_id, "%s", id);
    if (json_is_object (frame)) {
        take_frame (f, frame);
        return true;
    }
    const char *state = json_get_string (json_object_get (update, "status"), "state");
    if (state && ! str_eq (state, "TASK_STATE_WORKING"))
        f->is_fresh = true;
    f->has_change = true;
    wake (f);
    return true;
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct ui_follow *f = ctx;
    pthread_mutex_lock (&f->lock);
    if (! sse_feed (&f->parser, data, len, on_event, f))
        f->is_over = true;
    pthread_mutex_unlock (&f->lock);
    return true;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    (void)failure;
    (void)detail;
    struct ui_follow *f = ctx;
    pthread_mutex_lock (&f->lock);
    f->is_over = f->has_change = true;
    pthread_mutex_unlock (&f->lock);
    wake (f);
}

static void
subscribe (struct ui_follow *f)
{
    static const struct http_events events = { .body = on_body, .end = on_end };
    const struct door_subscription d = { .url = f->url,
                                         .token = f->token,
                                         .method = "murmur.WatchSession",
                                         .last_id = f->last_id,
                                         .connect_timeout_ms = 2000 };
    f->transfer = door_subscribe (f->client, &d, &events, f);
}

struct ui_follow *
ui_follow_new (const struct ui_follow_spec *spec)
{
    struct ui_follow *f = x_new0 (struct ui_follow);
    *f = (struct ui_follow){ .client = spec->client,
                             .hub = spec->hub,
                             .session_id = x_strdup (spec->session_id),
                             .url = x_strdup (spec->url),
                             .token = spec->token ? secret_copy (spec->token) : NULL,
                             .wake_fd = spec->wake_fd,
                             .has_change = true,
                             .is_fresh = true,
                             .text.kind = "text",
                             .thinking.kind = "thinking",
                             .calls = json_array () };
    pthread_mutex_init (&f->lock, NULL);
    subscribe (f);
    return f;
}

void
ui_follow_free (struct ui_follow *f)
{
    if (! f)
        return;
    http_transfer_release (f->transfer);
    pthread_mutex_destroy (&f->lock);
    sse_parser_free (&f->parser);
    buf_free (&f->text.kept);
    buf_free (&f->text.fresh);
    buf_free (&f->thinking.kept);
    buf_free (&f->thinking.fresh);
    json_decref (f->calls);
    secret_free (f->token);
    free (f->session_id);
    free (f->url);
    free (f);
}

bool
ui_follow_is_over (struct ui_follow *f)
{
    pthread_mutex_lock (&f->lock);
    bool is_over = f->is_over;
    pthread_mutex_unlock (&f->lock);
    return is_over;
}

void
ui_follow_again (struct ui_follow *f)
{
    http_transfer_release (f->transfer);
    f->is_over = false;
    sse_parser_free (&f->parser);
    f->parser = (struct sse_parser){ 0 };
    subscribe (f);
}

bool
ui_follow_take_change (struct ui_follow *f)
{
    pthread_mutex_lock (&f->lock);
    bool has = f->has_change;
    f->has_change = false;
    pthread_mutex_unlock (&f->lock);
    return has;
}

void
ui_follow_tell (struct ui_follow *f)
{
    pthread_mutex_lock (&f->lock);
    tell_all (f);
    pthread_mutex_unlock (&f->lock);
}

json_t *
ui_follow_live (struct ui_follow *f)
{
    json_t *live = json_object ();
    pthread_mutex_lock (&f->lock);
    tell_all (f); /* what is kept and where the next event begins are one state */
    json_set_u64 (live, "run", f->run);
    json_set_bool (live, "is_over", f->is_fresh);
    json_set_u64 (live, "at", f->text.at);
    json_set_u64 (live, "thinking_at", f->thinking.at);
    json_set_string (live, "text", f->text.kept.data ? f->text.kept.data : "");
    json_set_string (live, "thinking", f->thinking.kept.data ? f->thinking.kept.data : "");
    json_object_set_new (live, "calls", json_deep_copy (f->calls));
    pthread_mutex_unlock (&f->lock);
    return live;
}
