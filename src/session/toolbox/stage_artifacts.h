/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: every artifact of the manifest, in order, from name@version to verified bytes and what
 * the session needs of them (docs/spec/session.md 3.2).
 *
 * Always true: nothing is written; the lock, the sidecar and the bytes agree before an archive is
 * opened; grants and configuration come from the operator's entry, the contract from the artifact.
 */
#pragma once

#include "session/state/inventory.h"

struct session;

/* Step 10. */
bool stage_artifacts (struct session *s, struct mur_error **err);
/* The whole kit. */
void stage_artifacts_free (struct session *s);
void staged_artifact_clear (struct staged_artifact *a);
/* What a pull adds: the package (taken over), read as an entry of the manifest without grants would
 * be. Nothing is written. */
bool stage_pulled (struct session *s, struct staged_artifact *a, const char *full_name,
                   enum artifact_role role, struct package *package, struct mur_error **err);
