/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/driver_call.h"
#include "engine/guest.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/tokens.h"
#include "net/gateway.h"
#include "net/guest_http.h"
#include "net/http_client.h"
#include "session/guests/guest_store.h"
#include "session/model/credential.h"
#include "session/model/played_answer.h"
#include "session/model/retry.h"
#include "session/model/steering.h"
#include "session/model/stream_frames.h"
#include "session/state/deadline.h"
#include "session/state/session.h"
#include "trace/export/otel.h"

#include <stdlib.h>
#include <string.h>

/* What one attempt brought. */
struct
try {
    struct arena *arena;
    enum guest_ending how;
    struct mur_error *err; /* how != GUEST_OK */
    struct tool_result result;
    const char *text; /* data, else summary; NULL: neither */
    size_t len;
    json_t *body;      /* an object, or NULL */
    bool has_streamed; /* it showed text while it ran */
    struct guest_http_observation seen;
};

static void
try_clear (struct try *a)
{
    json_decref (a->body);
    mur_error_freep (&a->err);
    if (a->arena)
        arena_free (a->arena);
    *a = (struct try){ 0 };
}

/* --- one attempt --- */

static void
run_try (struct session *s, const struct driver_caller *c, struct frames *frames, struct try *a)
{
    const struct choice *d = c->driver;
    struct linkage_context contexts[] = { { &host_stream, &frames->host } };
    struct guest_setup setup = { .component = d->artifact->component,
                                 .artifact = d->artifact,
                                 .kind = GUEST_TOOL,
                                 .env = c->env,
                                 .gateway = d->artifact->guest.gateway,
                                 .contexts = contexts,
                                 .context_count = c->task ? ARRAY_LEN (contexts) : 0,
                                 .cancel = c->cancel };
    struct guest_store store = { 0 };
    a->arena = arena_new ();
    bool was_mine = loop_lock_pause (&s->loop_lock);
    if (guest_store_open (s, &setup, &store, &a->how, &a->err))
        a->how = host_tool_run (store.guest, c->request->text.data, c->request->text.len, NULL,
                                a->arena, &a->result, c->cancel, &a->err);
    if (store.http)
        guest_http_observe (store.http, &a->seen);
    guest_store_close (&store);
    loop_lock_resume (&s->loop_lock, was_mine);
    if (c->task) {
        a->has_streamed = frames->has_text;
        frames_settle (frames);
        frames->has_text = false; /* the cursor is closed; a retry begins anew */
    }
    if (a->how != GUEST_OK) {
        mur_context (&a->err, "driver %s", d->artifact->tool_name);
        return;
    }
    a->text = a->result.data ? a->result.data : a->result.summary;
    a->len = a->result.data ? a->result.data_len : a->result.summary_len;
    if (a->text)
        a->body = driver_answer_load (a->text, a->len);
}

static bool
is_error_stop (const struct try *a)
{
    return str_eq (json_get_string (a->body, "stop_reason"), "error");
}

/* --- failures --- */

static enum retry_connection
connection_of (const struct guest_http_observation *seen)
{
    if (! seen->requests || seen->failure == HTTP_OK)
        return RETRY_CONNECTION_FINE;
    return http_failure_is_transient (seen->failure) ? RETRY_CONNECTION_TRANSIENT
                                                     : RETRY_CONNECTION_HARD;
}

static struct retry_failure
failure_of (const struct try *a)
{
    const char *word = a->how == GUEST_OK ? tool_metadata_get (&a->result, "transient") : NULL;
    return (struct retry_failure){
        .is_credential_rejected = a->seen.is_credential_rejected,
        .word = str_eq (word, "true")    ? RETRY_WORD_TRANSIENT
                : str_eq (word, "false") ? RETRY_WORD_FINAL
                                         : RETRY_WORD_NONE,
        .connection = connection_of (&a->seen),
        /* A driver that could not run told us nothing but whether its connection broke. */
        .provider_status = a->how == GUEST_OK ? a->seen.status : 0,
        .has_retry_after = a->seen.has_retry_after,
        .retry_after_ms = a->seen.retry_after_ms,
    };
}

/* Which host could not be asked, and why, or NULL when it answered: a guest knows the gateway's
 * address alone, and few words for what goes wrong. */
static char *
unreached (const struct driver_caller *c, const struct try *a, const char *said)
{
    const struct gateway *gateway = c->driver->artifact->guest.gateway;
    if (! gateway || ! a->seen.requests || a->seen.status || a->seen.failure == HTTP_OK)
        return NULL;
    const char *why = http_failure_text (a->seen.failure);
    return strstr (said, why) ? x_strdup (gateway_host (gateway))
                              : x_asprintf ("%s: %s", gateway_host (gateway), why);
}

/* The driver's own words for its failure, redacted. */
static char *
failure_text (struct session *s, const struct driver_caller *c, const struct try *a)
{
    const char *said = a->how != GUEST_OK ? a->err->message : json_get_string (a->body, "error");
    if (! said && a->result.summary)
        said = a->result.summary;
    if (! said && a->result.data)
        said = a->result.data;
    said = said && said[0] ? said : "the driver gave no reason";
    _cleanup_free_ char *where = unreached (c, a, said);
    _cleanup_free_ char *more = where ? x_asprintf ("%s (%s)", said, where) : NULL;
    return redactor_apply (s->redactor, more ? more : said);
}

static bool
is_failure (const struct try *a)
{
    return a->how != GUEST_OK || a->result.status != TOOL_PASSED || is_error_stop (a);
}

/* What an attempt that is over costs when it failed. Returns the tokens charged. */
static uint64_t
settle_failure (struct session *s, const struct retry_failure *f, const struct driver_answer *usage,
                uint64_t estimate)
{
    if (f->connection != RETRY_CONNECTION_FINE || f->provider_status >= 400) {
        spend_release (s->spend);
        return 0;
    }
    if (usage->has_report) {
        uint64_t input = usage_request (&usage->usage),
                 output = (uint64_t)usage->usage.output.value;
        spend_settle (s->spend, input, output);
        return input + output;
    }
    spend_settle (s->spend, estimate, 0);
    return estimate;
}

static double
chance (void)
{
    uint32_t bits;
    random_bytes (&bits, sizeof (bits));
    return (double)bits / 4294967296.0;
}

static struct retry_policy
policy_of (const struct session *s)
{
    const struct retry_limits *r = s->manifest->inference->retry;
    return (struct retry_policy){ (uint32_t)r->max_retries.value, r->initial_delay_ms.value,
                                  r->max_delay_ms.value };
}

static void
trace_retry (struct session *s, const struct driver_caller *c, const struct retry_failure *f,
             enum retry_reason reason, uint32_t retries_done, uint64_t delay_ms, uint64_t charged,
             const char *error)
{
    TRACE (s->trace, NULL, inference_retry, .turn = c->turn, .task_id = c->task_id,
           .origin = c->origin, .attempt = retries_done + 1,
           .max_retries = policy_of (s).max_retries, .reason = retry_reason_name (reason),
           .provider_status = { reason == RETRY_BY_STATUS, f->provider_status }, .error = error,
           .delay_ms = delay_ms,
           .retry_after_ms = { f->has_retry_after, (int64_t)f->retry_after_ms },
           .charged_tokens = charged);
}

static void
note_retries (struct driver_answer *out, enum retry_verdict verdict)
{
    out->retry_stopped = retry_stopped_name (verdict);
    if (out->attempts > 1 && out->retry_stopped)
        out->retry_note =
            x_asprintf (" (%u attempts; retry stopped: %s)", out->attempts, out->retry_stopped);
    else if (out->attempts > 1)
        out->retry_note = x_asprintf (" (%u attempts)", out->attempts);
}

static void
warn_credential (const struct choice *d)
{
    struct mur_error *error = NULL;
    struct credential *key = d->artifact->guest.credential;
    const char *name = key ? credential_name (key) : NULL;
    mur_fail (&error, E_RUN_027,
              "the provider refused the credential of %s after it was read again: %s%s%s",
              d->artifact->full_name, name ? name : "the key", key ? ", " : "",
              key ? credential_place (key) : "");
    if (name)
        mur_hint (&error,
                  "`mur config set -g credentials.%s KEY` sets it for every project; a "
                  "variable of that name is read where the configuration has none",
                  name);
    diag_error (error);
    mur_error_free (error);
}

/* The key is good, and what it was shown for is not allowed to it. */
static void
note_forbidden (const struct choice *d)
{
    struct credential *key = d->artifact->guest.credential;
    const char *name = key ? credential_name (key) : NULL;
    diag_note ("the provider knows the key of %s%s%s%s%s and forbids this: another model "
               "(--model, inference.model), or the rights of its account",
               d->artifact->full_name, name ? ": " : "", name ? name : "", key ? ", " : "",
               key ? credential_place (key) : "");
}

/* What answered is no such provider, or has no such page: where that was. A guest knows the
 * gateway's address in place of the provider's. */
static void
note_asked (struct session *s, const struct choice *d, const char *asked)
{
    static const char inside[] = "http://" GATEWAY_AUTHORITY;
    const struct gateway *gateway = d->artifact->guest.gateway;
    bool is_inside = gateway && str_starts (asked, inside);
    _cleanup_free_ char *text = x_asprintf ("%s%s", is_inside ? gateway_base (gateway) : "",
                                            is_inside ? asked + sizeof inside - 1 : asked);
    _cleanup_free_ char *told = redactor_apply (s->redactor, text);
    diag_note ("%s asked %s: its base URL is gateway.endpoint in the manifest, or what "
               "`mur chat --with` was given",
               d->artifact->full_name, told);
}

/* The attempt failed for good. */
static void
fail_call (struct session *s, const struct choice *d, struct try *a, char *reason,
           enum retry_verdict verdict, struct driver_answer *out)
{
    note_retries (out, verdict);
    out->provider_status = a->seen.status >= 400 ? a->seen.status : 0;
    if (a->how != GUEST_OK) {
        out->outcome = DRIVER_NOT_RUN;
        out->error = steal_ptr (&a->err);
        free (out->error->message);
        out->error->message = reason;
        return;
    }
    out->outcome = DRIVER_FAILED;
    if (is_error_stop (a)) { /* the driver did answer: hooks see it */
        out->body = steal_ptr (&a->body);
        out->tokens = tokens_count (a->text, a->len);
    }
    out->cause = a->seen.is_credential_rejected ? "credential_rejected" : "driver_error";
    out->reason = reason;
    if (a->seen.is_credential_rejected)
        warn_credential (d);
    else if (a->seen.status == 403)
        note_forbidden (d);
    const char *asked = tool_metadata_get (&a->result, "asked");
    if (asked)
        note_asked (s, d, asked);
}

/* Why nothing is tried again, where the provider's own words do not tell. <text> is taken over. */
static char *
text_of_end (char *text, enum retry_verdict verdict, const struct retry_policy *policy,
             const struct retry_failure *f)
{
    char *told = NULL;
    if (verdict == RETRY_ASKED_TOO_LONG) {
        _cleanup_free_ char *asked_for = retry_wait_text (f->retry_after_ms);
        _cleanup_free_ char *allowed = retry_wait_text (policy->max_delay_ms);
        told = x_asprintf ("%s (it asks to be left alone for %s; "
                           "inference.retry.max_delay_ms allows %s)",
                           text, asked_for, allowed);
    } else if (verdict == RETRY_PAST_DEADLINE)
        told = x_asprintf ("%s (no time is left to try again before the deadline)", text);
    if (! told)
        return text;
    free (text);
    return told;
}

struct request_reader
request_reader_of (const struct session *s, const struct choice *d, const char *model)
{
    return (struct request_reader){
        .driver = s->choices.count > 1 ? name_bare (d->artifact->full_name) : NULL,
        .model = model,
        .primary_driver = name_bare (s->choices.primary.artifact->full_name),
        .primary_model = s->choices.primary.model,
    };
}

/* --- the call --- */

/* Takes what a good attempt brought and settles its cost. */
static void
accept (struct session *s, struct try *a, uint64_t estimate, struct driver_answer *out)
{
    driver_answer_take (s, x_memdup (a->text ? a->text : "", a->len + (a->text ? 1 : 0)), a->len,
                        steal_ptr (&a->body), estimate, out);
    if (out->outcome != DRIVER_RESPONSE)
        return;
    out->has_streamed = a->has_streamed;
    const char *id = tool_metadata_get (&a->result, "continuation_id");
    out->continuation_id = id && id[0] ? x_strdup (id) : NULL;
}

/* Whoever watches is told why nothing moves. */
static void
show_retry (struct session *s, const struct driver_caller *c, const struct retry_failure *f,
            uint32_t retries_done, uint64_t delay_ms)
{
    struct retry_policy policy = policy_of (s);
    _cleanup_free_ char *words = retry_words (&policy, f, retries_done, delay_ms);
    if (c->task)
        streams_working (registry_streams (s->registry), c->task->task, words, 0);
}

/* True when the attempt is over for good; false: wait and try again. */
static bool
judge (struct session *s, const struct driver_caller *c, struct try *a, uint64_t estimate,
       struct driver_answer *out)
{
    out->usage = (struct usage){ 0 };
    out->has_report = false;
    if (a->how == GUEST_CANCELLED) {
        spend_settle (s->spend, estimate, 0);
        out->outcome = DRIVER_CANCELED;
        return true;
    }
    if (! is_failure (a)) {
        accept (s, a, estimate, out);
        return true;
    }
    struct retry_failure f = failure_of (a);
    struct retry_policy policy = policy_of (s);
    enum retry_reason reason;
    uint64_t delay_ms = 0;
    if (a->body)
        driver_answer_read_usage (a->body, out);
    uint64_t charged = settle_failure (s, &f, out, estimate);
    enum retry_verdict verdict =
        retry_decide (&policy, &f, out->attempts - 1, deadline_left_ms (s->deadline), chance (),
                      &reason, &delay_ms);
    char *text = failure_text (s, c, a);
    if (verdict != RETRY_AFTER_DELAY) {
        fail_call (s, c->driver, a, text_of_end (text, verdict, &policy, &f), verdict, out);
        return true;
    }
    trace_retry (s, c, &f, reason, out->attempts - 1, delay_ms, charged, text);
    free (text);
    show_retry (s, c, &f, out->attempts - 1, delay_ms);
    bool was_mine = loop_lock_pause (&s->loop_lock);
    bool has_slept = cancel_sleep (c->cancel, delay_ms);
    loop_lock_resume (&s->loop_lock, was_mine);
    if (! has_slept) {
        out->outcome = DRIVER_CANCELED;
        return true;
    }
    return false;
}

static void
call_until_over (struct session *s, const struct driver_caller *c, uint64_t estimate,
                 struct driver_answer *out)
{
    struct frames frames = { 0 };
    if (c->task)
        frames_begin (&frames, s, c->task->task, true);
    otel_chat_begins (s->otel);
    for (bool is_over = false; ! is_over;) {
        if (! spend_admit (s->spend, estimate, c->output_cap, &out->refusal)) {
            out->outcome = DRIVER_SPEND_REFUSED;
            break;
        }
        out->attempts++;
        struct try a = { 0 };
        run_try (s, c, &frames, &a);
        is_over = judge (s, c, &a, estimate, out);
        try_clear (&a);
    }
    frames_clear (&frames);
}

void
driver_call_as (struct session *s, const struct driver_caller *c, uint64_t estimate,
                struct driver_answer *out)
{
    const struct rec_model *then;
    if (played_answer (s, c, estimate, out, &then))
        return;
    if (! steering_take_driver (s, c->cancel)) {
        out->outcome = DRIVER_CANCELED;
        return;
    }
    call_until_over (s, c, estimate, out);
    steering_release_driver (s);
    if (then)
        played_compare (s, c, then, estimate, out);
}

void
driver_call (struct session *s, struct running_task *t, struct request *request, uint64_t estimate,
             struct driver_answer *out)
{
    const struct choice *d = t->choice.driver;
    const struct driver_caller agent = {
        .driver = d,
        .task = t,
        .task_id = t->task->id,
        .turn = t->counts.turns,
        .output_cap = t->choice.output_cap,
        .env = d->env.items,
        .cancel = t->cancel,
        .request = request,
        .list = &t->list,
    };
    driver_call_as (s, &agent, estimate, out);
}
