/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs a manifest allows that this machine does not have: most often a name typed wrongly.
 */
#pragma once

#include "policy/policy.h"

/* A note on stderr for each, with the nearest name on PATH. */
void missing_programs_note (const struct policy *p);
