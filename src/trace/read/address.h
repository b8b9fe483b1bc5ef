/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded sessions by address: @1, a full id, a suffix, a literal path (spec/cli.md 1).
 *
 * One resolver for all; running sessions are addressed elsewhere.
 */
#pragma once

#include "base/error.h"

struct recorded_session {
    char *session_id; /* NULL for a literal path */
    char *trace_path; /* the trace file */
    char *dir_path;   /* its records directory; NULL for a literal path */
};

/* Resolves <address> (NULL: @1) among the sessions of the records group of <work_root> (canonical,
 * home_work_root). <label> prefixes failures ("--resume", "before"); may be NULL. <code> is
 * E_TRC_002 or E_EVAL_002. */
bool recorded_session_resolve (const char *address, const char *work_root, const char *label,
                               enum diag_code code, struct recorded_session *out,
                               struct mur_error **err);
void recorded_session_free (struct recorded_session *s);
