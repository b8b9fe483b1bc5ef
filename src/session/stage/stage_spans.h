/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session's spans are exported, decided at staging: a header whose credential is not set
 * refuses the launch before anything exists.
 */
#pragma once

#include "base/error.h"

struct session;

/* Reads observability and the environment into s->spans. E-CAP-021, E-MAN-003, E-RUN-056. */
bool stage_spans (struct session *s, struct mur_error **err);
void stage_spans_free (struct session *s);
