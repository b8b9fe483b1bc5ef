/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run --roster`: launching a formation (spec/cli.md 2.1).
 */
#pragma once

#include "cli/line/args.h"

/* The whole of it. Returns the exit status: the entry member's, or 128 + a signal. */
int roster_run (const struct cli_args *args, struct mur_error **err);
