/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of this driver share.
 */
#ifndef DRIVER_CLAUDE_H
#define DRIVER_CLAUDE_H

#include "murmur_harness.h"

/* --- control.c --- */

/* Where the manifest wants to be asked first, adds to <input> that the program tells each call of
 * its own before it makes it. */
void claude_control_begin (const struct mur_json *config, struct mur_text *input);
/* A question of the program: always answered, now or once a person has spoken. */
void claude_control_request (const struct mur_json *line);

#endif
