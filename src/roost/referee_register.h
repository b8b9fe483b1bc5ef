/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /register: a session makes itself known, with the approval it was started under or as a
 * root.
 */
#pragma once

#include "roost/callers.h"
#include "roost/referee.h"

/* POST /register, with or without an approval. The session is counted no longer than <caller>
 * lives, where the kernel names its process; else no longer than its running record says, which
 * must be there soon. */
struct verdict referee_register (struct referee *r, const char *approval, const char *body,
                                 size_t body_len, const struct caller *caller);
