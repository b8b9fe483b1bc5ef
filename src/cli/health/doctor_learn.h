/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor --learn PROGRAM -- ARGS`: runs a program once on the host and prints the block of a
 * manifest that lets it run inside, for programs no recipe knows.
 */
#pragma once

#include "cli/line/args.h"

int doctor_learn (const struct cli_args *args, struct mur_error **err);
