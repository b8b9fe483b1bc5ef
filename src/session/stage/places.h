/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: the work folder, the session's own directories, the copy of the manifest
 * (docs/spec/session.md 3.1, 3.2).
 *
 * Always true: the runtime creates nothing inside the work folder; every write below runtime/ walks
 * from a held descriptor.
 */
#pragma once

#include "base/error.h"

struct session;

void places_new (struct session *s);
/* The runtime directory goes with it. */
void places_free (struct session *s);

/* Steps 17, 18, 22. */
bool stage_work_dir (struct session *s, struct mur_error **err);
bool stage_session_dirs (struct session *s, struct mur_error **err);
bool stage_manifest_copy (struct session *s, struct mur_error **err);
