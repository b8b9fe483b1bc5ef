/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that needs variables. See lines.h.
 */
#define REQUIRED_ENV "LAB_ONE", "LAB_TWO", "LAB_ONE"
#include "lines.h"
