/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines whose first word may name a session: whether the words that are there are those they need.
 * Each returns what is wrong, owned, or NULL.
 */
#pragma once

#include "cli/line/args.h"

/* `cancel` names a session and a task, or a door and a task. */
char *cli_check_cancel (const struct cli_args *args);
/* One positional of `send` and `answer` is the text, two are a session and the text. */
char *cli_check_text (const struct cli_args *args);
