/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP of guests in a session that runs a record again: nothing leaves.
 */
#pragma once

#include "engine/engine.h"

/* Refuses every request and counts it; its context is the player. */
extern const struct guest_http_handler played_http_handler;
