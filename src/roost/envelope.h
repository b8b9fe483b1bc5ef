/* SPDX-License-Identifier: Apache-2.0
 *
 * The envelope: a child must fit inside its parent, axis by axis, or is refused; nothing is ever
 * narrowed (spec/spawn.md B5).
 */
#pragma once

#include "manifest/capsule/capsule.h"

/* Whether <child> fits. The error's message begins with the first violating manifest key and a
 * colon and names the child's entry; its code is E-RUN-007. */
bool envelope_check (const struct capsule_manifest *parent, const struct capsule_manifest *child,
                     struct mur_error **err);
