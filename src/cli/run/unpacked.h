/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle as a folder for as long as it is replayed.
 */
#pragma once

#include "base/error.h"

struct unpacked {
    char *dir; /* absolute; NULL: nothing is unpacked */
    bool is_strict;
};

/* Unpacks into a folder of this process, below the temporary folder. E-RPL-004, E-IO-003. */
bool unpacked_open (const char *bundle, struct unpacked *out, struct mur_error **err);
/* Removes it. */
void unpacked_close (struct unpacked *u);
