/* SPDX-License-Identifier: Apache-2.0
 *
 * Retention: what trace.retain and context.retain let a launch remove (docs/spec/records.md 7,
 * docs/spec/session.md 11.7).
 *
 * Always true: a block that was not written removes nothing; nothing named like this session or
 * later goes; nothing here fails a launch.
 */
#pragma once

#include "session/state/session.h"

void retention_apply (struct session *s);
