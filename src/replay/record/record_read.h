/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a record back from the folder it was written to, and looking at its bodies.
 */
#pragma once

#include "replay/record/record.h"

/* Reads the record in <dir>. E-TRC-001 (not a trace), E-IO-001, E-RPL-001 (it holds too little to
 * be replayed: what is missing is named). */
struct record *record_read (const char *dir, struct mur_error **err);
/* Every body a replay would ask for is there and is what its name says. E-RPL-004. */
bool record_check (const struct record *r, struct mur_error **err);
