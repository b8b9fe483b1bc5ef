/* SPDX-License-Identifier: Apache-2.0
 *
 * What kubectl's complaints mean to whoever deploys a capsule, and what helps.
 */
#pragma once

#include "cli/deploy/kubectl.h"

/* Why it failed in <said>, with a remedy: E-DEP-006, E-DEP-007. Always false. */
bool
kubectl_explain (const struct kubectl *k, const struct kubectl_said *said, struct mur_error **err);
