/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages as hooks see and give them.
 */
#pragma once

#include "host/hook.h"
#include "session/conversation/messages.h"

void hook_message_fill (const struct message *m, struct arena *arena, struct hook_message *out);
/* A message a hook gave, with the id it gave or a new one. NULL: a tool message without its
 * envelope. */
struct message *hook_message_take (const struct hook_message *m);
