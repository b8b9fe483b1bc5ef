/* SPDX-License-Identifier: Apache-2.0
 *
 * What a package manager or a server printed, as a sentence with what to do about it: a page of
 * somebody else's log helps nobody.
 */
#pragma once

#include "cli/mcp/server_source.h"

struct server_start;

/* npm or pip failed to install <what>: the log in *err becomes a sentence where it is known. */
void explain_npm (struct mur_error **err, const char *what);
void explain_pip (struct mur_error **err, const char *what);
/* The server could not be looked at: *err gets a hint from what it wrote, unless it has one. */
void explain_look (struct mur_error **err, const struct server_source *source,
                   const struct server_start *start);
