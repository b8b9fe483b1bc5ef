/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: the component of a script capsule (docs/spec/session.md 7).
 */
#pragma once

#include "base/error.h"

struct session;

/* Step 16. */
bool stage_script (struct session *s, struct mur_error **err);
