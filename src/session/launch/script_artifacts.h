/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script capsule sees and changes of its artifacts: the host half of
 * murmur:artifact-manager/manage (spec/artifacts.md 14, 15.5).
 *
 * Callers: script.c.
 */
#pragma once

#include "host/artifact_manager.h"
#include "session/state/session.h"

/* The functions, answering for this session. */
struct artifact_manager_host script_artifacts (struct session *s);
/* Writes artifact_pulled of every pull, once the script's run is over. */
void script_artifacts_record (struct session *s);
