/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/progress.h"

#include <math.h>

char *
mcp_progress_tell (struct mcp_progress *p, const struct mcp_request *r, double at, double total,
                   const char *message)
{
    double base = p->has_told ? p->base : p->at; /* signs of life that came before */
    if (! r->progress_token || ! isfinite (at) || (p->has_told && base + at <= p->at))
        return NULL;
    p->has_told = true;
    p->base = base;
    p->at = base + at;
    p->total = isfinite (total) && total > 0 ? base + total : 0;
    return mcp_progress_text (r, p->at, p->total, message);
}

char *
mcp_progress_beat (struct mcp_progress *p, const struct mcp_request *r)
{
    if (! r->progress_token)
        return NULL;
    /* Toward the end that is known, and never there. */
    p->at += p->total > p->at ? (p->total - p->at) / 100 : 1;
    return mcp_progress_text (r, p->at, p->total, NULL);
}
