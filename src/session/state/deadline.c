/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/deadline.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "session/state/session.h"

#include <string.h>

/* Ten years: what lies further away is no bound. */
#define LIMIT_SECS ((uint64_t)315360000)

static uint64_t
derived_notice (uint64_t secs)
{
    uint64_t notice = secs / 10;
    return notice < 1 ? 1 : notice > 300 ? 300 : notice;
}

void
deadline_fill (const struct session *s, struct deadline *out)
{
    const struct stage_request *r = s->asked;
    uint64_t now_ms = clock_monotonic_ms (), now_unix_ms = clock_unix_ms ();
    *out = (struct deadline){ 0 };
    if (r->player)
        return; /* it comes where it came, which is on record */
    if (r->time.own_deadline_secs) {
        out->is_set = true;
        out->secs = r->time.own_deadline_secs;
        out->at_ms = r->time.process_start_ms + r->time.own_deadline_secs * 1000;
    }
    if (r->time.has_inherited_deadline) {
        uint64_t left_ms = r->time.inherited_deadline_ms > now_unix_ms
                               ? r->time.inherited_deadline_ms - now_unix_ms
                               : 0;
        if (left_ms > LIMIT_SECS * 1000)
            left_ms = LIMIT_SECS * 1000;
        if (! out->is_set || now_ms + left_ms <= out->at_ms) {
            out->is_set = out->is_inherited = true;
            out->secs = (left_ms + 999) / 1000;
            out->at_ms = now_ms + left_ms;
        }
    }
    if (! out->is_set)
        return;
    const struct opt_u64 *notice = &s->policy->lifecycle.deadline_notice_secs;
    out->notice_secs = notice->is_set ? notice->value : derived_notice (out->secs);
    char text[25];
    uint64_t left_ms = out->at_ms > now_ms ? out->at_ms - now_ms : 0;
    clock_rfc3339 (now_unix_ms + left_ms, text);
    snprintf (out->at_text, sizeof (out->at_text), "%.19sZ", text);
}

uint64_t
deadline_left_ms (const struct deadline *d)
{
    if (! d->is_set)
        return UINT64_MAX;
    uint64_t now_ms = clock_monotonic_ms ();
    return d->at_ms > now_ms ? d->at_ms - now_ms : 0;
}

char *
deadline_json (const struct deadline *d)
{
    if (! d->is_set)
        return NULL;
    return x_asprintf ("{\"at\":\"%s\",\"secs\":%llu,\"notice_secs\":%llu,\"source\":\"%s\"}",
                       d->at_text, (unsigned long long)d->secs, (unsigned long long)d->notice_secs,
                       d->is_inherited ? "inherited" : "own");
}

void
deadline_give_notice (struct session *s, const char *tool_name, const char *task_id,
                      struct buf *text)
{
    struct deadline *d = s->deadline;
    if (! d->is_set || ! d->notice_secs || d->notice_is_given)
        return;
    uint64_t left_ms = deadline_left_ms (d);
    if (left_ms > d->notice_secs * 1000)
        return;
    d->notice_is_given = true;
    uint64_t left_secs = left_ms / 1000;
    buf_printf (text, "\n[This session ends at %s, in %llu seconds. Finish what matters now.]",
                d->at_text, (unsigned long long)left_secs);
    TRACE (s->trace, NULL, deadline_notice, .task_id = task_id, .tool_name = tool_name,
           .deadline_at = d->at_text, .left_secs = left_secs, .notice_secs = d->notice_secs);
}
