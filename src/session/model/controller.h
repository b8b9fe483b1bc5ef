/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's side of a session: its token, the secrets it supplies, and what the control
 * plane of the door asks of the session (docs/spec/door.md 15).
 *
 * Always true: without something a controller may change there is no token and no surface; a
 * secret lives in memory alone and is overwritten when it is replaced, forgotten or the session
 * ends; nothing says more of it than whether it is set.
 */
#pragma once

#include "session/state/session.h"

struct controller;

/* At staging; there is none when control.settings and control.secrets are empty. */
void stage_controller (struct session *s);
void controller_free (struct controller *c);
DEFINE_CLEANUP (struct controller, controller_free)

/* Once the door is bound: writes the token's file. E-RUN-041. */
bool controller_begin (struct session *s, struct mur_error **err);
/* Gives the door its control plane; before it serves. */
void controller_serve (struct session *s);
