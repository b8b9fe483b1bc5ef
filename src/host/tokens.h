/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:runtime/tokens@0.4.0: the runtime's own count of a text
 * (spec/artifacts.md 15.11). Needs no grant and no context.
 */
#pragma once

#include "engine/engine.h"

extern const struct host_interface host_tokens;
