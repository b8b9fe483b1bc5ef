/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of the model that come out of a record (docs/spec/records.md 14).
 */
#pragma once

#include "session/model/driver_call.h"

struct rec_model;

/* Answers the call from the record the session runs again, comparing what is asked. False: there is
 * none, or somebody is to be asked for real; *then is what goes on in place of the answer, NULL:
 * the answer. */
bool played_answer (struct session *s, const struct driver_caller *c, uint64_t estimate,
                    struct driver_answer *out, const struct rec_model **then);
/* The answer is looked at, and what was recorded takes its place. */
void played_compare (struct session *s, const struct driver_caller *c, const struct rec_model *then,
                     uint64_t estimate, struct driver_answer *out);
