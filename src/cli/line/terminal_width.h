/* SPDX-License-Identifier: Apache-2.0
 *
 * How wide the terminal is now: a person may have drawn its window wider since.
 */
#pragma once

/* Columns of the terminal on standard output; 0: it is none, or does not say. */
unsigned terminal_width (void);
