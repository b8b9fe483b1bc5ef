/* SPDX-License-Identifier: Apache-2.0
 *
 * The inference line of a call and, by capture level, the hashes and bodies of what went over the
 * wire (docs/spec/records.md 3.2, 3.6).
 */
#pragma once

#include "session/conversation/request.h"
#include "session/model/driver_call.h"

/* A call that was answered. Fails with E-RUN-050 or E-IO-003: a body or the line could not be
 * written. */
bool inference_line_answered (struct session *s, struct running_task *t, struct request *request,
                              const struct driver_answer *a, uint64_t input_tokens,
                              struct mur_error **err);
/* A call a hook made, answered or failed. */
void inference_line_hook (struct session *s, const struct driver_caller *caller,
                          struct request *request, struct message_list *list,
                          const struct driver_answer *a, uint64_t input_tokens);
/* A call that failed. */
void inference_line_failed (struct session *s, struct running_task *t, struct request *request,
                            const struct driver_answer *a);
