/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: a driver that interrupts through stdin and reports usage. See lines.h.
 */
#include "lines.h"
