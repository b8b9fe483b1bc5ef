/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's registration with mur-roost, for its life (docs/spec/spawn.md A13).
 *
 * Always true: the credential is in memory alone, and no record or log shows it or the grant it
 * was had for.
 */
#pragma once

#include "session/state/session.h"

/* Registers when the capsule may start others or was started with a grant; else does nothing.
 * E-RUN-019. */
bool roost_session_begin (struct session *s, struct mur_error **err);
/* Deregisters, once, best effort: a failure is one line on stderr. */
void roost_session_end (struct session *s, bool is_complete);
/* The same before a forced exit: waits for next to nothing and says nothing. */
void roost_session_abandon (struct session *s);
