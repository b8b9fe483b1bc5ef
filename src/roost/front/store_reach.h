/* SPDX-License-Identifier: Apache-2.0
 *
 * The records store children are told of, looked at before the first of them starts.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* E-DEP-005: no pod could use that address. One at which nobody answers from here, or that means
 * the asking machine, is a warning: a pod may see it otherwise. */
bool store_reach_check (const char *url, struct mur_error **err);
