/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client hears of a call under way: what the tool tells of itself, and a sign of life where
 * it tells nothing.
 *
 * Always true: the numbers of one call only grow, whichever of both they come from.
 */
#pragma once

#include "mcp/request.h"

#include <stdint.h>

struct mcp_progress {
    double at, total; /* as they were told last; total 0: unknown */
    double base;      /* what the tool's own numbers are counted from */
    bool has_told;    /* the tool told something */
};

/* The tool is at <at> of <total> (0: unknown); <message> may be NULL. The notification (owned), or
 * NULL when nobody wants it or it is no progress. */
char *mcp_progress_tell (struct mcp_progress *p, const struct mcp_request *r, double at,
                         double total, const char *message);
/* A sign of life: the notification (owned), or NULL when nobody wants it. */
char *mcp_progress_beat (struct mcp_progress *p, const struct mcp_request *r);
