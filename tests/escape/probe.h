/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attempts of the probe share: one line that says how one ended, and the rows of each
 * file.
 */
#pragma once

struct attempt_row {
    const char *name;
    int arguments;
    int (*run) (char **a);
};

/* Prints `refused ERRNO` for a negative result, else `ok [detail]`. Returns 0. */
int tell (long result, const char *detail);

/* Ended by a row without a name. */
extern const struct attempt_row wall_attempts[];
