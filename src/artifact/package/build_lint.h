/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur build` remarks on without refusing (spec/artifacts.md 4, W-BLD-*).
 */
#pragma once

#include "artifact/package/build.h"

/* W-BLD-001 for each declaration whose reserved slot was filled already. */
void build_lint_redundant (const struct strv *declared);
/* W-BLD-002: root components beside capsule.wasm, which never run. */
void build_lint_shadowed (const struct build_plan *plan);
/* W-BLD-003: build inputs packed by mistake, in one warning. */
void build_lint_inputs (const struct build_plan *plan);
