/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of a command that follows something: q leaves.
 *
 * Always true: the terminal is as it was however the command ends, and while it is stopped; without
 * a terminal of this command's own nothing is read.
 */
#pragma once

struct watch_keys;

/* Before a second thread begins: takes keys and signals from here on, and q leaves with exit status
 * 0. NULL: there are no keys. */
struct watch_keys *watch_keys_begin (void);
/* The command ends by itself. */
void watch_keys_end (struct watch_keys *k);
