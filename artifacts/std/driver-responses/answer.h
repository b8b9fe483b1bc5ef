/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer of the Responses form, whole or in events.
 */
#ifndef DRIVER_RESPONSES_ANSWER_H
#define DRIVER_RESPONSES_ANSWER_H

#include "murmur_model.h"

/* Whether the answer is continued by its id when the provider does not say that it stored it. Set
 * before a call. */
extern bool answer_continues;

void answer_take_event (struct mur_answer *answer, const struct mur_json *json);
void answer_take_whole (struct mur_answer *answer, const struct mur_json *json);

#endif
