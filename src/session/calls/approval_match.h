/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rules of approvals a call falls under.
 *
 * Always true: what cannot be read of a call falls under every rule it could break; a rule is never
 * passed by another name of the same thing (a link, another case of a host, a full name for a bare
 * one).
 */
#pragma once

#include "session/state/call.h"
#include "session/state/session.h"

struct approval_hit {
    size_t rule;    /* of policy->approvals */
    bool is_unseen; /* it cannot be seen whether the rule is meant */
};

struct approval_hits {
    struct approval_hit *items; /* in the order of the rules, each once */
    size_t len;
};

/* What the call falls under. */
void approval_match (struct session *s, const struct call *call, struct approval_hits *out);
void approval_hits_clear (struct approval_hits *h);
#define _cleanup_approval_hits_ _cleanup_ (approval_hits_clear)
