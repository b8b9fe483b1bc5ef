/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that interrupts with SIGINT. See lines.h.
 */
#define INTERRUPT MUR_INTERRUPT_SIGNAL
#include "lines.h"
