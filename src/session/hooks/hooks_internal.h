/* SPDX-License-Identifier: Apache-2.0
 *
 * All hooks of a session, as the files of this room share them.
 */
#pragma once

#include "session/hooks/hook.h"
#include "session/hooks/hooks.h"

#include <pthread.h>

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
