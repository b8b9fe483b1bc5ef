/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging a process driver and finding its harness (docs/spec/session.md 3.2 steps 11, 13).
 */
#pragma once

#include "base/error.h"

struct guest;
struct session;

/* Step 11 of a process driver: instantiate, describe (E-RUN-032), required variables (E-CAP-019),
 * the executable (E-RUN-006). */
bool stage_harness (struct session *s, struct mur_error **err);
/* Step 13: a ceiling needs a driver that reports usage. E-RUN-038. */
bool stage_harness_spend (struct session *s, struct mur_error **err);
void harness_free (struct session *s);
/* A fresh instance of the driver, for one run. */
struct guest *harness_open_driver (struct session *s, struct mur_error **err);
