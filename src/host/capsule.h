/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling a script capsule: murmur:capsule/run@0.1.0 (spec/artifacts.md 15.4).
 */
#pragma once

#include "engine/engine.h"
#include "engine/guest.h"

/* Calls run () -> nothing. Returns how it ended; for all but GUEST_OK *err is set, a missing export
 * naming the expected instance and advising a rebuild. */
enum guest_ending host_capsule_run (struct guest *g, struct cancel *cancel, struct mur_error **err);
