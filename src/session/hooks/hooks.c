/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hooks.h"

#include "door/tasks/tasks.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define DRAIN_MS 15000

_Static_assert((int)BIND_ON_STAGE - 1 == (int)HOOK_ON_STAGE,
               "events and bindings are in one order");
_Static_assert((int)BIND_ON_SESSION_END - 1 == (int)HOOK_ON_SESSION_END,
               "events and bindings are in one order");

/* --- instances --- */

/* Who is told of what. */
static void
fill (struct hook *h, struct session *s, struct staged_artifact *a)
{
    const struct hook_contract *c = &a->contract;
    *h = (struct hook){ .session = s,
                        .artifact = a,
                        .name = a->tool_name,
                        .is_async = c->mode == HOOK_ASYNC,
                        .is_denying = c->commit == COMMIT_DENY };
    for (int kind = 0; kind < HOOK_EVENT_KINDS; kind++)
        h->is_watching[kind] =
            c->binding == BIND_ALL ? kind != HOOK_ON_STAGE : (int)c->binding - 1 == kind;
}

static size_t
count_hooks (const struct session *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        count += s->kit.artifacts[i].role == ROLE_HOOK;
    return count;
}

static bool
open_all (struct session *s, struct mur_error **err)
{
    struct hooks *all = s->rooms.hooks = x_new0 (struct hooks);
    pthread_mutex_init (&all->lock, NULL);
    all->idle = cancel_new ();
    all->items = x_new_array (struct hook, count_hooks (s));
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->role != ROLE_HOOK)
            continue;
        struct hook *h = &all->items[all->len++];
        fill (h, s, a);
        if (! hook_check_exports (h, err) || ! hook_open (h, err))
            return false;
        if (h->is_async) {
            h->queue = hook_queue_new (h);
            all->has_async = true;
        }
    }
    return true;
}

static void
tell_session_start (struct session *s)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_strv_ struct strv capabilities = { 0 };
    session_list_capabilities (s, &capabilities);
    struct hook_answers none;
    const struct hook_event event = { .kind = HOOK_ON_SESSION_START,
                                      .session_start = {
                                          .capsule_name = s->manifest->name,
                                          .capsule_version = s->manifest->version,
                                          .session_id = s->id.text,
                                          .model = s->choices.primary.model,
                                          .capabilities = capabilities.items,
                                      } };
    hooks_tell (s, NULL, &event, HOOK_NONE, arena, &none);
}

bool
hooks_start (struct session *s, struct mur_error **err)
{
    if (! count_hooks (s))
        return true;
    if (! open_all (s, err)) {
        hooks_free (s);
        return false;
    }
    tell_session_start (s);
    return true;
}

/* --- on-stage --- */

static void
run_on_stage (struct session *s, struct staged_artifact *a)
{
    struct hook h;
    _cleanup_error_ struct mur_error *err = NULL;
    fill (&h, s, a);
    if (! component_exports_function (a->component, host_hook_interface, "on-stage")) {
        hook_log (&h, HOOK_ON_STAGE, "it does not export this function");
        return;
    }
    if (! hook_open (&h, &err)) {
        hook_log (&h, HOOK_ON_STAGE, err->message);
        return;
    }
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct hook_event event = { .kind = HOOK_ON_STAGE };
    struct strv allowed = { 0 };
    for (size_t i = 0; i < s->policy->commands.allow.len; i++)
        strv_push (&allowed, s->policy->commands.allow.items[i]);
    event.shell_allow = allowed.items;
    struct value value = hook_event_to_value (arena, &event);
    strv_free (&allowed);
    struct hook_output output;
    const char *failure;
    if (! hook_ask (&h, HOOK_ON_STAGE, &value, arena, &output, &failure))
        hook_log (&h, HOOK_ON_STAGE, failure);
    else if (output.arm == HOOK_WRITE_MANIFESTS)
        hook_write_manifests (&h, &output);
    else if (output.arm != HOOK_NONE)
        hook_log (&h, HOOK_ON_STAGE, "the answer is not honoured at this event; it was discarded");
    guest_store_close (&h.store);
}

bool
stage_hooks (struct session *s, struct mur_error **err _unused_)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        const struct hook_contract *c = &a->contract;
        if (a->role == ROLE_HOOK &&
            (c->binding == BIND_ON_STAGE || (c->binding == BIND_ALL && c->mode == HOOK_BLOCKING)))
            run_on_stage (s, a);
    }
    return true;
}

/* --- dispatch --- */

bool
hooks_watch (const struct session *s, enum hook_event_kind kind)
{
    for (size_t i = 0; s->rooms.hooks && i < s->rooms.hooks->len; i++)
        if (s->rooms.hooks->items[i].is_watching[kind])
            return true;
    return false;
}

static void
serve (struct hook_serving *serving, struct running_task *t, enum hook_event_kind kind)
{
    *serving = (struct hook_serving){ .kind = kind, .task = t };
    if (t) {
        snprintf (serving->task_id, sizeof (serving->task_id), "%s", t->task->id);
        serving->turn = t->counts.turns;
    }
}

static void
take_answer (struct hook *h, enum hook_event_kind kind, const struct hook_output *output,
             enum hook_arm honoured, struct arena *arena, struct hook_answers *out)
{
    if (output->arm == HOOK_NONE)
        return;
    if (output->arm != honoured) {
        hook_discard (h, kind, output->arm);
        return;
    }
    struct hook_output *kept = arena_new0 (arena, struct hook_output);
    *kept = *output;
    out->items[out->len++] = (struct hook_answer){ h->name, kept };
}

void
hooks_tell (struct session *s, struct running_task *t, const struct hook_event *event,
            enum hook_arm honoured, struct arena *arena, struct hook_answers *out)
{
    *out = (struct hook_answers){ 0 };
    if (! hooks_watch (s, event->kind))
        return;
    out->items = arena_new_array (arena, struct hook_answer, s->rooms.hooks->len);
    struct value value = hook_event_to_value (arena, event);
    for (size_t i = 0; i < s->rooms.hooks->len; i++) {
        struct hook *h = &s->rooms.hooks->items[i];
        if (! h->is_watching[event->kind])
            continue;
        struct hook_serving serving;
        serve (&serving, t, event->kind);
        if (h->is_async) {
            hook_queue_put (h->queue, event, &serving);
            continue;
        }
        h->serving = serving;
        struct hook_output output;
        const char *failure;
        if (hook_ask (h, event->kind, &value, arena, &output, &failure)) {
            take_answer (h, event->kind, &output, honoured, arena, out);
            continue;
        }
        hook_log (h, event->kind, failure);
        if (! out->failed_hook) {
            out->failed_hook = h->name;
            out->failure = failure;
        }
    }
}

/* --- the end --- */

void
hooks_end (struct session *s, const char *exit_status)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct hook_answers none;
    const struct hook_event event = {
        .kind = HOOK_ON_SESSION_END,
        .session_end = { .turns = (uint32_t)all->turns,
                         .input_tokens = all->input_tokens,
                         .output_tokens = all->output_tokens,
                         .tool_calls = (uint32_t)all->tool_calls,
                         .shell_calls = (uint32_t)all->shell_calls,
                         .duration_ms = clock_monotonic_ms () - s->tally.launched_ms,
                         .exit_status = exit_status },
    };
    hooks_tell (s, NULL, &event, HOOK_NONE, arena, &none);
    uint64_t deadline_ms = clock_monotonic_ms () + DRAIN_MS;
    for (size_t i = 0; i < all->len; i++)
        if (all->items[i].queue)
            hook_queue_close (all->items[i].queue);
    for (size_t i = 0; i < all->len; i++)
        if (all->items[i].queue)
            hook_queue_drain (steal_ptr (&all->items[i].queue), deadline_ms);
}

void
hooks_free (struct session *s)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    for (size_t i = 0; i < all->len; i++) {
        if (all->items[i].queue) {
            hook_queue_close (all->items[i].queue);
            hook_queue_drain (all->items[i].queue, 0);
        }
        guest_store_close (&all->items[i].store);
    }
    free (all->items);
    if (all->artifacts)
        arena_free (all->artifacts);
    free (all->context_id);
    free (all->as_given);
    free (all->original);
    free (all->output);
    cancel_unref (all->idle);
    pthread_mutex_destroy (&all->lock);
    free (all);
    s->rooms.hooks = NULL;
}
