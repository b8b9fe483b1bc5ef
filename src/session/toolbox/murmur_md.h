/* SPDX-License-Identifier: Apache-2.0
 *
 * MURMUR.md: what a capsule finds about itself in its runtime directory (docs/spec/session.md
 * 10.3).
 */
#pragma once

#include "session/state/session.h"

/* Writes it; <url> NULL before the door is bound. A failure is a warning. */
void murmur_md_write (struct session *s, const char *url);
