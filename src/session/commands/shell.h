/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell commands as tool calls: one tool for each name of capabilities.shell.allow
 * (docs/spec/session.md 8.5).
 */
#pragma once

#include "session/commands/confine.h"
#include "session/state/call.h"
#include "session/state/outcome.h"

struct running_task;

/* Parameters of one, compact JSON with sorted keys. Static. */
const char *shell_parameters (const char *name);
/* The description of one; in the session's arena. */
const char *shell_description (struct session *s, const char *name);
/* True for a listed name that no artifact's tool shadows. */
bool shell_is_offered (const struct session *s, const char *name);

/* A call as a deny hook judges it. */
struct shell_request {
    char *binary;  /* canonical path, or the bare name */
    char *command; /* trimmed */
    struct strv argv;
    const char *script; /* an interpreter's, borrowed from command; NULL else */
    char *recipe;       /* what the recipe it names would run; NULL: none is known */
};
void shell_request_clear (struct shell_request *r);
/* Reads a call of an offered command; false: it is none, or dispatch will refuse its input. */
bool
shell_read (struct session *s, const char *name, const json_t *input, struct shell_request *out);

/* Starts the command of a tool and leaves what a record of it needs in out->shell. The caller waits
 * and unrefs. NULL: E-IO-001 (not on PATH) or the errors of command_start. */
struct command *shell_start (struct session *s, const struct call *call, const char *command,
                             struct call_outcome *out, struct mur_error **err);
/* Starts a line an operator wrote: its words as they are, the first of them a name of
 * capabilities.shell.allow. The caller waits and unrefs. NULL: E-RUN-013 (the work folder is too
 * large), E-IO-001 or the errors of command_start. */
struct command *shell_start_line (struct session *s, const char *line, struct mur_error **err);

/* Runs the call; its input may be anything. */
void shell_call (struct session *s, struct running_task *task, const struct call *call,
                 struct call_outcome *out);
