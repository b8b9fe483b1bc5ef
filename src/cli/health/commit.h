/* SPDX-License-Identifier: Apache-2.0
 *
 * The commit this program was built from.
 */
#pragma once

/* 40 hex digits, or NULL when it was not built from a checkout. Static storage. */
const char *mur_commit (void);
