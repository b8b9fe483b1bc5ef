/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads this user has: what RLIMIT_NPROC counts.
 */
#pragma once

#include <stdint.h>

uint64_t user_threads_count (void);
