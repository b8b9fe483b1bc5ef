/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle a delegated child is given in MURMUR_SPAWNER: who started it and where its end is
 * reported (spec/spawn.md A9). spawn/child/environment.h writes it.
 */
#pragma once

#include "base/error.h"

struct spawner {
    char *session_id; /* the parent's; NULL: this session was not delegated */
    char *context_id;
    char *delegation_id;
    char *url;       /* NULL: lineage only, no completion is wanted */
    char *approvals; /* JSON: what the parent's person is asked about first; NULL: nothing */
    const char
        *workdir_snapshot; /* JSON: of what the work folder is a copy, borrowed; NULL: of nothing */
};

/* Reads the variable's text. NULL or blank: not delegated. E-RUN-020, which never quotes the text:
 * a child that cannot report its end may not run. */
bool spawner_parse (const char *text, struct spawner *out, struct mur_error **err);
void spawner_clear (struct spawner *s);
