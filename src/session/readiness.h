/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch says on stdout: the one line of --json, or the lines for people
 * (docs/spec/session.md 4.1, docs/spec/cli.md 2).
 *
 * Always true: a stdout that refuses a line never stops a session.
 */
#pragma once

#include "session/stage.h"

/* The readiness object, compact, keys in name order, written as one line at once. <with_tokens>:
 * the tokens of an authenticated door are in it, for a launcher that reads a private pipe. */
void readiness_print_json (const struct session *s, const char *url, bool with_tokens);
/* The lines for people, in order, each through <line> (diag_stdout_line, diag_stderr_line). */
typedef void readiness_line_fn (const char *fmt, ...);
void readiness_print_human (const struct session *s, const char *url, bool is_verbose,
                            readiness_line_fn *line);
