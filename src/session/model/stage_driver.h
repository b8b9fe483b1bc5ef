/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: gateways with their keys, the driver choices and what each may send
 * (docs/spec/manifest.md 5.4, 7.1, 7.3).
 *
 * Always true: manifest values are never clamped by the driver's table; a key is looked at, never
 * kept.
 */
#pragma once

#include "base/error.h"

struct session;

/* Steps 13-14. */
bool stage_gateways (struct session *s, struct mur_error **err);
bool stage_driver (struct session *s, struct mur_error **err);
void stage_driver_free (struct session *s);
