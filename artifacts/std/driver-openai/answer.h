/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer of Chat Completions, from whole or in events.
 */
#ifndef DRIVER_OPENAI_ANSWER_H
#define DRIVER_OPENAI_ANSWER_H

#include "murmur_model.h"

/* Where servers put what the model thought, in the order they are looked for; NULL ends. */
extern const char *const reasoning_fields[];

/* Before each call: nothing of an earlier answer is known. */
void answer_begin (void);
void answer_take_event (struct mur_answer *answer, const struct mur_json *json);
void answer_take_whole (struct mur_answer *answer, const struct mur_json *json);

#endif
