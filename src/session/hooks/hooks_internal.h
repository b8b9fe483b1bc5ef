/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks as the files hooks.c, hook_queue.c, hook_host.c, hook_gate.c and hook_events.c share them.
 */
#pragma once

#include "host/conversation.h"
#include "host/inference.h"
#include "host/task_io.h"
#include "manifest/settings/artifact_manifest.h"
#include "session/guests/guests.h"
#include "session/hooks/hooks.h"

struct hook_queue;

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

struct hooks {
    struct hook *items;
    size_t len;
    bool has_async;
    struct cancel *idle; /* never raised: of calls outside a task */
    uint64_t turns, input_tokens, output_tokens, tool_calls, shell_calls; /* events of the launch */
    struct arena *artifacts; /* of the present turn's on-inference */
    struct hook_answers shown;

    pthread_mutex_t lock; /* guards what follows; a leaf */
    bool has_task;
    char *context_id, *as_given, *original, *output;
    size_t as_given_len, original_len;
};

/* hooks.c */
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

/* hook_queue.c */
struct hook_queue *hook_queue_new (struct hook *h);
void hook_queue_put (struct hook_queue *q, const struct hook_event *event,
                     const struct hook_serving *serving);
/* No more jobs are taken; what is queued is still run. */
void hook_queue_close (struct hook_queue *q);
/* Waits until <deadline_ms> (monotonic); then what is left is abandoned and traced. Frees. */
void hook_queue_drain (struct hook_queue *q, uint64_t deadline_ms);

/* hook_manifests.c */
/* Tool manifests an on-stage hook wrote for names of capabilities.shell.allow. */
void hook_write_manifests (struct hook *h, const struct hook_output *output);

/* hook_host.c */
void hook_bind (struct hook *h);
/* hook_inference.c */
bool hook_run_inference (void *ctx, const struct inference_request *request, struct arena *arena,
                         struct inference_response *response, const char **refusal);
/* hook_messages.c */
void hook_message_fill (const struct message *m, struct arena *arena, struct hook_message *out);
/* A message a hook gave, with the id it gave or a new one. NULL: a tool message without its
 * envelope. */
struct message *hook_message_take (const struct hook_message *m);
