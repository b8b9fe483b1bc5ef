/* SPDX-License-Identifier: Apache-2.0
 *
 * Values too large for the environment of some guests.
 *
 * A component adapted from WASI preview 1 takes its environment through one page of memory of the
 * adapter; a longer value ends its call in a trap that says nothing of the cause. What the
 * manifest allows (65 536 bytes) is more than that, so staging tells beforehand.
 */
#pragma once

#include "artifact/package/package.h"

/* What every adapter seen takes, with room for the names beside it. */
#define ADAPTED_VALUE_MAX 57344

/* True when a value of <len> bytes would end the calls of this package's component. Looks at the
 * component only when the value is large at all. */
bool env_limit_traps (const struct package *p, size_t len);
