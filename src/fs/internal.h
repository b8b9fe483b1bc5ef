/* SPDX-License-Identifier: Apache-2.0
 *
 * What root.c, latch.c and paths.c share and nobody else sees.
 */
#pragma once

#include "fs/root.h"

/* Takes the refusal's strings over; a refusal already latched is dropped. */
void fs_latch_push (struct fs_latch *l, struct fs_refusal refusal);
