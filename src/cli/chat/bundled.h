/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule a person talks to where there is none: offline, answering from a script.
 */
#pragma once

#include "base/error.h"

/* Writes its manifest below ~/.murmur/chat and returns its path. Owned; NULL with E-IO-003 or
 * E-IO-004. */
char *bundled_capsule (struct mur_error **err);
