/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur build --skill`: a skill written for anybody, a folder or zip with SKILL.md, packed as an
 * artifact.
 *
 * Always true: the files are packed in order of their names; SKILL.md as UTF-8.
 */
#pragma once

#include "artifact/package/build.h"

struct skill_request {
    const char *source;  /* a folder or a zip */
    const char *name;    /* NULL: inferred from the source */
    const char *version; /* NULL: 0.1.0 */
    const char *summary; /* NULL: none */
    const char *output;  /* NULL: the current folder */
};

/* Packs a skill from a folder or zip holding SKILL.md in any case. E-BLD-001, E-BLD-002, E-MAN-*,
 * E-IO-001, E-IO-003. */
bool build_skill (const struct skill_request *request, struct build_result *result,
                  struct mur_error **err);
