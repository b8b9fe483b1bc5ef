/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching a child, step by step (spec/spawn.md A1, A5-A11).
 *
 * The order is the point: the lifeline before the folder, the folder before the process; whatever
 * fails after the fork ends and reaps the child before the error is returned.
 */
#pragma once

#include "spawn/child/child.h"

/* mur_child_launch, given up early when <cancel> (may be NULL) is raised. */
struct mur_child *
child_launch (const struct mur_child_launch *launch, struct cancel *cancel, struct mur_error **err);
