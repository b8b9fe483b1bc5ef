/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether an address of a records store can be one of pods: pure, nothing is asked.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* E-DEP-005: it is none, or leaves open what a pod would not know. */
bool deploy_store_check (const char *url, struct mur_error **err);
