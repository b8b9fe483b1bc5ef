/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_capsule.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "session/handoff/delegate.h"
#include "session/handoff/delegate_wait.h"
#include "session/state/loop_lock.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

struct capsule_call {
    struct session *session;
    struct delegate_ask ask;
    struct delegate_result result;
    char *capsule, *version, *task;
    pthread_t thread;
};

/* The newest version of a capsule in the stores; "" when there is none. Owned. */
static char *
newest_version (const struct session *s, const char *capsule)
{
    _cleanup_strv_ struct strv found = { 0 };
    const struct str_list *allowed = &s->policy->spawn_allow;
    const char *name = capsule;
    for (size_t i = 0; i < allowed->len && ! strchr (capsule, '/'); i++) {
        const char *slash = strrchr (allowed->items[i], '/');
        if (slash && str_eq (slash + 1, capsule))
            name = allowed->items[i];
    }
    for (size_t i = 0; i < STORE_COUNT; i++)
        store_versions (&s->asked->stores->at[i], name, &found);
    const char *newest = "";
    for (size_t i = 0; i < found.len; i++)
        if (! *newest || version_compare (found.items[i], newest) > 0)
            newest = found.items[i];
    return x_strdup (newest);
}

json_t *
step_delegation (struct session *s, const struct plan_step *step, const json_t *input)
{
    const char *at = strrchr (step->name, '@');
    _cleanup_free_ char *capsule =
        x_strndup (step->name, at ? (size_t)(at - step->name) : strlen (step->name));
    _cleanup_free_ char *version = at ? x_strdup (at + 1) : newest_version (s, capsule);
    const char *task =
        json_is_string (input) ? json_string_value (input) : json_get_string (input, "objective");
    json_t *call = json_object ();
    json_set_string (call, "capsule", capsule);
    json_set_string (call, "version", version);
    json_set_string (call, "task", task ? task : "");
    return call;
}

static void *
delegate (void *arg)
{
    struct capsule_call *call = arg;
    pthread_setname_np (pthread_self (), "mur-plan-step");
    delegate_wait (call->session, &call->ask, &call->result);
    return NULL;
}

void
step_capsule_start (struct step_run *run)
{
    struct capsule_call *call = x_new0 (struct capsule_call);
    call->session = run->session;
    call->capsule = x_strdup (json_get_string (run->call, "capsule"));
    call->version = x_strdup (json_get_string (run->call, "version"));
    call->task = x_strdup (json_get_string (run->call, "task"));
    call->ask = (struct delegate_ask){ .capsule = call->capsule,
                                       .version = call->version,
                                       .task = call->task,
                                       .running = run->task->task,
                                       .cancel = run->task->cancel };
    run->step->attempts++;
    run->capsule = call;
    if (pthread_create (&call->thread, NULL, delegate, call) == 0)
        return;
    /* Without a thread to be had the step runs here. */
    delegate (call);
    call->thread = pthread_self ();
}

void
step_capsule_finish (struct step_run *run, struct delegate_result *out)
{
    struct capsule_call *call = run->capsule;
    if (! pthread_equal (call->thread, pthread_self ())) {
        loop_lock_release (&run->session->loop_lock);
        pthread_join (call->thread, NULL);
        loop_lock_take (&run->session->loop_lock);
    }
    *out = call->result;
    free (call->capsule);
    free (call->version);
    free (call->task);
    free (call);
    run->capsule = NULL;
}
