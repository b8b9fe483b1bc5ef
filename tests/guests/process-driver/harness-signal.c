/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that interrupts with SIGINT. See lines.h.
 */
#define INTERRUPT EXPORTS_MURMUR_DRIVER_PROCESS_INTERRUPT_METHOD_SIGNAL_INT
#include "lines.h"
