/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has room: live sessions, reservations and children are counted, the killed are looked for.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "home/running.h"
#include "roost/referee_internal.h"

#define OFTEN_UP_TO   64 /* running sessions that are looked for at every refusal */
#define LOOK_AGAIN_MS 1000
#define RECORD_MS     15000 /* by then a session whose process nobody names has a running record */
#define SESSIONS_MAX  4096u

void
referee_drop_reservation (struct referee *r, size_t i)
{
    free (r->reservations[i].parent);
    r->reservations[i] = r->reservations[--r->reservation_len];
}

void
referee_forget_expired (struct referee *r, uint64_t now)
{
    for (size_t i = 0; i < r->reservation_len;)
        if (r->reservations[i].expires_ms <= now)
            referee_drop_reservation (r, i);
        else
            i++;
    for (size_t i = 0; i < r->spent_len;)
        if (r->spent[i].expires_ms <= now)
            r->spent[i] = r->spent[--r->spent_len];
        else
            i++;
}

static bool
is_known (void *ctx, const char *session_id)
{
    return job_table_find (&((struct referee *)ctx)->jobs, session_id) != NULL;
}

uint64_t
referee_machine_live (struct referee *r)
{
    return r->jobs.running + r->reservation_len + census_count (r->census, is_known, r);
}

uint64_t
referee_live_children (const struct referee *r, const char *session_id)
{
    uint64_t count = 0;
    for (size_t i = 0; i < r->jobs.size; i++)
        count += r->jobs.slots[i] && r->jobs.slots[i]->state == JOB_RUNNING &&
                 str_eq (r->jobs.slots[i]->parent, session_id);
    for (size_t i = 0; i < r->reservation_len; i++)
        count += str_eq (r->reservations[i].parent, session_id);
    return count;
}

void
referee_finish (struct referee *r, struct job *j, enum job_state state)
{
    job_table_finish (&r->jobs, j, state);
    capsule_manifest_free (steal_ptr (&j->manifest));
    for (size_t i = 0; i < r->reservation_len;)
        if (str_eq (r->reservations[i].parent, j->session_id))
            referee_drop_reservation (r, i);
        else
            i++;
}

static bool
is_gone (const struct referee *r, const struct job *j, uint64_t now_ms)
{
    const char *reason;
    if (j->pid)
        return running_check (j->pid, j->start, &reason) == RUNNING_GONE;
    enum census_record record = census_look (r->census, j->session_id);
    return record == RECORD_GONE ||
           (record == RECORD_NONE && now_ms - j->registered_ms > RECORD_MS);
}

/* Sessions that were killed never say so: before somebody is refused for them their processes are
 * looked for. Not often, since each costs a file. True when some were gone. */
static bool
bury_the_killed (struct referee *r, const struct job *asking)
{
    uint64_t now_ms = clock_monotonic_ms (), before = r->jobs.running;
    if (r->fleet) /* pods, whose end the cluster tells */
        return false;
    if (r->jobs.running > OFTEN_UP_TO && now_ms - r->looked_ms < LOOK_AGAIN_MS)
        return false;
    r->looked_ms = now_ms;
    for (size_t i = 0; i < r->jobs.size; i++) {
        struct job *j = r->jobs.slots[i];
        if (j && j != asking && j->state == JOB_RUNNING && is_gone (r, j, now_ms))
            referee_finish (r, j, JOB_FAILED);
    }
    return r->jobs.running < before;
}

static struct verdict
machine_is_full (const struct referee *r, uint64_t live)
{
    return verdict_error (403,
                          "this machine runs %llu live capsules and --max-live-capsules %u "
                          "allows no more: waiting helps, asking for less does not",
                          (unsigned long long)live, r->options.max_live);
}

bool
referee_has_room_for_root (struct referee *r, struct verdict *refusal)
{
    if (r->jobs.running < SESSIONS_MAX ||
        (bury_the_killed (r, NULL) && r->jobs.running < SESSIONS_MAX))
        return true;
    *refusal = verdict_error (
        403, "this daemon knows %u running sessions and takes no more until one ends",
        SESSIONS_MAX);
    return false;
}

bool
referee_has_room (struct referee *r, const struct job *parent, struct verdict *refusal)
{
    referee_forget_expired (r, clock_unix_ms ());
    uint64_t live = referee_machine_live (r),
             children = referee_live_children (r, parent->session_id);
    bool is_full = live >= r->options.max_live || children >= r->options.max_concurrent;
    if (is_full && bury_the_killed (r, parent)) {
        live = referee_machine_live (r);
        children = referee_live_children (r, parent->session_id);
    }
    if (live >= r->options.max_live)
        *refusal = machine_is_full (r, live);
    else if (children >= r->options.max_concurrent)
        *refusal = verdict_error (403,
                                  "this session has %llu live children and --max-concurrent %u "
                                  "allows no more until one ends",
                                  (unsigned long long)children, r->options.max_concurrent);
    else
        return true;
    return false;
}
