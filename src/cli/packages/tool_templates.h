/* SPDX-License-Identifier: Apache-2.0
 *
 * The template of a tool, by the language it is written in.
 */
#pragma once

#include "cli/packages/templates.h"

/* "c", "python", "javascript" or "rust". NULL when there is none of that name. */
const struct project_template *tool_template_find (const char *language);
