/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether there is anything a session could go on with, asked before it is staged.
 *
 * <store> is the record store of the policy; a context nobody kept anything of does not exist.
 */
#pragma once

#include <stdbool.h>

/* Of a capsule that talks to a model itself. */
bool conversation_exists (const char *store, const char *context_id);
/* Of a harness, which keeps its sessions itself. */
bool harness_memory_exists (const char *store, const char *context_id);
