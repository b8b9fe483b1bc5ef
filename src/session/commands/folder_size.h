/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a folder holds.
 */
#pragma once

#include <stdint.h>

/* Bytes of the regular files below it. No link is followed; what cannot be read counts as nothing.
 */
uint64_t folder_size (const char *path);
