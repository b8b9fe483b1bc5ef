/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the doors of running sessions whether they are who their record says (spec/door.md 16.1,
 * layer 3).
 */
#pragma once

#include "home/running.h"
#include "net/http_client.h"

/* True when the door at the record's address answers as that session: connect within 2 s, card
 * within 5 s. Never fails: what cannot be asked does not answer. */
bool door_answers (struct http_client *client, const struct running_record *record);
/* Asks many at once; answers[i] belongs to records[i]. */
void doors_answer (struct http_client *client, const struct running_record *const *records,
                   size_t count, bool *answers);
