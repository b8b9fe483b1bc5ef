/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /spawn: may a running session start this capsule? The steps are those of spec/spawn.md,
 * in its order, so that a refusal is the same whatever else is wrong.
 */
#pragma once

#include "roost/referee.h"

/* POST /spawn: may the holder of <credential> (NULL: none) start this capsule? */
struct verdict
referee_spawn (struct referee *r, const char *credential, const char *body, size_t body_len);
