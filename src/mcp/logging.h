/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server tells of itself in words: messages of a level, for who asked to hear them.
 *
 * Always true: a client that named no level hears nothing.
 */
#pragma once

#include "base/json.h"

/* "debug", "info" ... as one static word; NULL: there is no such level. */
const char *mcp_level_find (const char *name);
/* Every level, from the least: "debug, info, ...". Owned. */
char *mcp_levels_words (void);
/* True when who wants <least> (NULL: nothing) hears of <level>. */
bool mcp_level_is_heard (const char *least, const char *level);
/* The notification, owned; <logger> may be NULL. */
char *mcp_log_text (const char *level, const char *logger, const json_t *data);
