/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that names no program. See lines.h.
 */
#define BINARY ""
#include "lines.h"
