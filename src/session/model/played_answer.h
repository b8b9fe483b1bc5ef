/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of the model that come out of a record (docs/spec/records.md 14).
 */
#pragma once

#include "session/model/driver_call.h"

/* Answers the call from the record the session runs again, comparing what is asked. False: there is
 * no record, or the model is to be asked for real. */
bool played_answer (struct session *s, const struct driver_caller *c, uint64_t estimate,
                    struct driver_answer *out);
