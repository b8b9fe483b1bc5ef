/* SPDX-License-Identifier: Apache-2.0
 *
 * What a delegated session owes to the one that started it: the report of its end
 * (docs/spec/spawn.md A16, docs/spec/session.md 15.4).
 */
#pragma once

#include "session/state/session.h"

/* Writes completion.json and tells the parent's door, when the session was delegated and its handle
 * names an address. After session_end; nothing that goes wrong here fails the session. */
void completion_report_send (struct session *s, bool is_good);
