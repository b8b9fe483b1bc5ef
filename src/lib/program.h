/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program runs a session.
 */
#pragma once

#include "base/error.h"

/* <named>, else $MURMUR_MUR_BINARY, else the `mur` installed with this library: beside it, or in
 * the bin folder of its prefix; else the first on PATH. Owned. E-IO-003 saying where was looked. */
char *program_find (const char *named, struct mur_error **err);
