/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur:message/send for a script capsule: one A2A message to a peer its network grant names
 * (docs/spec/door.md 13).
 *
 * Always true: no connection is made to an address the grant does not name; the peer is told the
 * origin `peer` and no trust, which a guest cannot change.
 */
#pragma once

#include "host/message.h"
#include "session/state/session.h"

struct message_host script_messages (struct session *s);
/* Writes the a2a_send lines of the run; the trace is made for them when there is none yet. */
void script_messages_record (struct session *s);
