/* SPDX-License-Identifier: Apache-2.0
 *
 * One hook: its instance, one call of it, what is logged and traced of its faults
 * (docs/spec/session.md 9).
 *
 * Always true: an instance a fault left unusable is never asked again.
 */
#pragma once

#include "base/ids.h"
#include "host/conversation.h"
#include "host/hook.h"
#include "host/inference.h"
#include "host/task_io.h"
#include "session/guests/guest_store.h"

struct hook_queue;
struct running_task;

/* Who is being served while a hook runs: what its host calls need. */
struct hook_serving {
    enum hook_event_kind kind;
    struct running_task *task; /* NULL outside a task, and always for an async hook */
    char task_id[ID_LEN + 1];  /* "" outside a task */
    uint64_t turn;
    struct cancel *cancel;
};

struct hook {
    struct session *session;
    struct staged_artifact *artifact;
    const char *name;
    bool is_watching[HOOK_EVENT_KINDS];
    bool is_async;
    bool is_denying; /* asked at the decision */
    struct guest_store store;
    bool is_lost; /* an earlier fault left the instance unusable */
    struct hook_serving serving;
    struct inference_host inference;
    struct task_io_host task_io;
    struct conversation_host conversation;
    struct hook_queue *queue; /* async hooks */
};

/* Every function but the optional ones must be there, whatever the hook is bound to; it is not told
 * of those that are not. E-IO-003. */
bool hook_check_exports (struct hook *h, struct mur_error **err);
/* One call. False with *failure (in the arena) when the hook answered an error or could not run;
 * nothing is logged yet. */
bool hook_ask (struct hook *h, enum hook_event_kind kind, const struct value *event,
               struct arena *arena, struct hook_output *out, const char **failure);
/* One line of logs/hook-<name>.log. */
void hook_log (struct hook *h, enum hook_event_kind kind, const char *text);
/* The line of a fault in the trace. */
void hook_trace_fault (struct hook *h, enum hook_event_kind kind, const char *arm);
/* An arm the event does not honour: logged and traced. */
void hook_discard (struct hook *h, enum hook_event_kind kind, enum hook_arm arm);
/* Instantiates. False with *err. */
bool hook_open (struct hook *h, struct mur_error **err);
