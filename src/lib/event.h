/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as the library hands them out, read from what the door streams (docs/spec/door.md 8).
 */
#pragma once

#include "base/json.h"
#include "murmur/event.h"

/* An event of ours, of no task. <text> is copied, NULL stays NULL. Owned. */
struct mur_event *event_new (enum mur_event_kind kind, const char *text);
/* The event a StreamResponse stands for, of which <json> is the text. NULL: it tells nobody
 * anything. Owned. */
struct mur_event *event_of_response (const json_t *response, const char *json, size_t len);
