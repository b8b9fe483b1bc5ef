/* SPDX-License-Identifier: Apache-2.0
 *
 * The record that an address of the command line means; of none, the newest session that is no
 * replay itself.
 */
#pragma once

#include "replay/record/record.h"

/* NULL: E-TRC-002, and what record_read says. */
struct record *
record_addressed (const char *address, const char *work_root, struct mur_error **err);
