/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing what `mur new` creates (spec/cli.md 4).
 *
 * Always true: everything is written into a hidden folder beside the target and renamed into place
 * once, so the new folder is there whole or not at all; what exists is never overwritten.
 */
#pragma once

#include "base/error.h"
#include "cli/packages/templates.h"

/* What a mark in the text of a template stands for; a NULL mark ends the list. */
struct scaffold_mark {
    const char *mark; /* "@NAME@" */
    const char *text;
};

/* E-NEW-003 when anything, also a link to nowhere, has this name here. */
bool scaffold_check_target (const char *name, struct mur_error **err);
/* The text with every mark replaced. Owned. */
char *scaffold_fill (const char *text, const struct scaffold_mark *marks);
/* Creates the folder <name> here. E-NEW-003, E-IO-003. */
bool scaffold_write (const struct template_file *files, const char *name,
                     const struct scaffold_mark *marks, struct mur_error **err);
/* Says what was created and, line by line, what to type next. */
void scaffold_report (const struct template_file *files, const char *name, const char *next);
