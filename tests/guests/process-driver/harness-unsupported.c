/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that cannot interrupt. See lines.h.
 */
#define INTERRUPT EXPORTS_MURMUR_DRIVER_PROCESS_INTERRUPT_METHOD_UNSUPPORTED
#include "lines.h"
