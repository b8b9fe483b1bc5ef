/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run --explain-scope`: what a launch would be granted here, without launching
 * (docs/spec/cli.md 2).
 */
#pragma once

#include "session/stage.h"

/* Prints the report. The request holds what is known before a launch is prepared. */
bool run_explain (const struct stage_request *q, bool is_json, struct mur_error **err);
