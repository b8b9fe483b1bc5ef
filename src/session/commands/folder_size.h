/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a folder holds.
 */
#pragma once

#include <stdint.h>

/* More than any bound: what lies deeper than is looked, or in a folder of ours that was closed. */
#define FOLDER_SIZE_BEYOND ((uint64_t)1 << 60)

/* Bytes of the regular files below it, the longer of length and what the disk holds, and a price
 * for each entry beyond ten thousand. No link is followed. */
uint64_t folder_size (const char *path);
