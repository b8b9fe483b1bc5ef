/* SPDX-License-Identifier: Apache-2.0
 *
 * Process driver: one that reports no usage. See lines.h.
 */
#define REPORTS_USAGE false
#include "lines.h"
