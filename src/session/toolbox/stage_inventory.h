/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: what the model may call, the staged tools and skills and what the runtime provides,
 * sorted by name (docs/spec/session.md 5.4).
 *
 * Always true: the same manifest and the same artifacts give the same list.
 */
#pragma once

#include "base/error.h"

struct session;

/* Also once a pull or a removal changed what there is. */
bool stage_inventory (struct session *s, struct mur_error **err);
