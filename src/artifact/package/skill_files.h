/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a skill that somebody wrote for any product: a folder, or a zip of one.
 *
 * Always true: only regular files beside SKILL.md are taken; what is left out is named.
 */
#pragma once

#include "artifact/package/build.h"

/* Gathers the files of the skill in <source> into <files>, their names without a folder. A zip may
 * hold the skill in one folder of its own. Folders and links that are left out go to <left_out>, as
 * they are called. E-IO-001 (nothing there, no SKILL.md), E-IO-003. */
bool skill_files_gather (const char *source, struct build_plan *files, struct strv *left_out,
                         struct mur_error **err);
