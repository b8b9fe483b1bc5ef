/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsules a person talks to who has none: one that answers offline from a script, and one with
 * a model and the tool `files`.
 */
#pragma once

#include "base/error.h"

/* Writes its manifest below ~/.murmur/chat and returns its path. Owned; NULL with E-IO-003 or
 * E-IO-004. */
char *bundled_capsule (struct mur_error **err);
/* The same of an agent with <model>; <with> is a provider's name or the address of a server that
 * speaks OpenAI's protocol. The same errors. */
char *bundled_agent (const char *with, const char *model, struct mur_error **err);
/* Says how to use each provider whose key is in the environment. */
void bundled_tell_providers (void);
