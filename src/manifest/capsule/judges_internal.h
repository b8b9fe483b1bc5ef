/* SPDX-License-Identifier: Apache-2.0
 *
 * The judges of a capsule manifest, in the order of refusals (spec/manifest.md 2.1); each returns
 * false with *err set.
 */
#pragma once

#include "manifest/capsule/reading.h"

/* (5) */
bool judge_artifacts (struct reading *rd, struct mur_error **err);
/* (7), and inside (5). <path> is the block's. */
bool judge_capabilities (struct reading *rd, struct capabilities *c, const char *path,
                         struct mur_error **err);
/* (8) to (13), and (21) */
bool judge_inference (struct reading *rd, struct mur_error **err);
bool judge_driver_gateways (struct reading *rd, struct mur_error **err);
bool judge_alternate_drivers (struct reading *rd, struct mur_error **err);
bool judge_process_driver (struct reading *rd, struct mur_error **err);
bool judge_prompt_artifact (struct reading *rd, struct mur_error **err);
bool judge_alternates_selectable (struct reading *rd, struct mur_error **err);
/* (14), (15) and the scorers */
bool judge_context (struct reading *rd, struct mur_error **err);
bool judge_trace (struct reading *rd, struct mur_error **err);
bool judge_otel (struct reading *rd, struct mur_error **err);
void settle_scorers (struct reading *rd);
/* (16) to (20) */
bool judge_door (struct reading *rd, struct mur_error **err);
bool judge_door_and_spawn (struct reading *rd, struct mur_error **err);
bool judge_lifecycle (struct reading *rd, struct mur_error **err);
bool judge_approvals (struct reading *rd, struct mur_error **err);
bool judge_exports (struct reading *rd, struct mur_error **err);
bool judge_control (struct reading *rd, struct mur_error **err);
