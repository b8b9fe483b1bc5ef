/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that cannot interrupt. See lines.h.
 */
#define INTERRUPT MUR_INTERRUPT_NONE
#include "lines.h"
