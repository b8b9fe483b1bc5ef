/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/referee.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "roost/fleet.h"
#include "roost/fleet_ask.h"
#include "roost/referee_internal.h"

static const char *const job_state_names[] = {
    [JOB_RUNNING] = "running",
    [JOB_COMPLETE] = "complete",
    [JOB_FAILED] = "failed",
};

struct referee *
referee_new (const struct referee_options *options, struct census *census)
{
    struct referee *r = x_new0 (struct referee);
    r->options = *options;
    r->census = census;
    random_bytes (r->key, sizeof r->key);
    pthread_mutex_init (&r->lock, NULL);
    return r;
}

void
referee_free (struct referee *r)
{
    if (! r)
        return;
    secret_wipe (r->key, sizeof r->key);
    job_table_clear (&r->jobs);
    for (size_t i = 0; i < r->reservation_len; i++)
        free (r->reservations[i].parent);
    free (r->reservations);
    free (r->spent);
    census_free (r->census);
    pthread_mutex_destroy (&r->lock);
    free (r);
}

bool
referee_has_fleet (const struct referee *r)
{
    return r->fleet != NULL;
}

void
referee_stop (struct referee *r)
{
    fleet_stop (r->fleet);
}

static bool
read_outcome (const char *text, enum job_state *state)
{
    for (int s = JOB_COMPLETE; s <= JOB_FAILED; s++)
        if (str_eq (job_state_names[s], text)) {
            *state = (enum job_state)s;
            return true;
        }
    return false;
}

struct verdict
referee_deregister (struct referee *r, const char *credential, const char *body, size_t body_len)
{
    struct verdict refusal;
    enum job_state state;
    _cleanup_json_ json_t *o = request_body (body, body_len, &refusal);
    const char *outcome = o ? request_text (o, "outcome", &refusal) : NULL;
    if (! outcome)
        return refusal;
    if (! read_outcome (outcome, &state))
        return verdict_error (400, "outcome must be \"complete\" or \"failed\", not \"%s\"",
                              outcome);
    pthread_mutex_lock (&r->lock);
    struct job *j = referee_holder (r, credential);
    _cleanup_free_ char *session_id = j ? x_strdup (j->session_id) : NULL;
    if (j)
        referee_finish (r, j, state);
    pthread_mutex_unlock (&r->lock);
    if (session_id && r->fleet)
        fleet_deregister (r, session_id, body, body_len);
    return session_id ? (struct verdict){ 200, json_object () } : verdict_not_you ();
}

struct verdict
referee_status (struct referee *r, const char *session_id)
{
    pthread_mutex_lock (&r->lock);
    referee_forget_expired (r, clock_unix_ms ());
    const struct job *j = job_table_find (&r->jobs, session_id);
    struct verdict v;
    if (! j) {
        v = verdict_error (404, "session not found");
    } else {
        json_t *body = json_object ();
        json_set_string (body, "status", job_state_names[j->state]);
        json_set_u64 (body, "depth_remaining", j->depth);
        json_set_u64 (body, "live_children", referee_live_children (r, session_id));
        json_set_u64 (body, "live_capsules", referee_machine_live (r));
        v = (struct verdict){ 200, body };
    }
    pthread_mutex_unlock (&r->lock);
    return v;
}
