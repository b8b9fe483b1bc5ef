/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run --remote-child`: the process a parent holds of a child that mur-roost started on another
 * machine. Hidden: only a parent's launch says it.
 */
#pragma once

#include "cli/line/args.h"

/* Stands for the child until its end. The exit status. */
int remote_stand_run (const struct cli_args *args, struct mur_error **err);
