/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script capsule sees and changes of its artifacts: the host half of
 * murmur:artifact-manager/manage (docs/spec/artifacts.md 14, 15.5).
 *
 * Always true: what it lists are tools, skills and commands, never drivers or hooks; every change
 * goes through a pull.
 */
#pragma once

#include "host/artifact_manager.h"
#include "session/state/session.h"

/* The functions, answering for this session. */
struct artifact_manager_host script_artifacts (struct session *s);
/* Writes artifact_pulled of every pull, once the script's run is over. */
void script_artifacts_record (struct session *s);
