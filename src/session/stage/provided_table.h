/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools the runtime provides, all of them. A new one is a file provided_<name>.c with its row,
 * in the room of what it asks, and a line here.
 */
#pragma once

#include "session/state/provided.h"

#include <stddef.h>

extern const struct provided_tool *const provided_table[];
extern const size_t provided_table_len;
