/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking mur-roost whether a child may start, and which host variables it would get
 * (spec/spawn.md A3, A4).
 *
 * Always true: a token is in no message of ours, whatever went wrong.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/secret.h"
#include "net/http_client.h"

struct approval {
    struct secret *token; /* msa1; used once */
    char sha256[65];
    uint64_t expires_ms; /* Unix; 0 when the daemon did not say */
    bool is_launched; /* the daemon started the child elsewhere: the token is for asking after it */
    uint64_t wait_secs; /* then: what its start may take */
};

/* What a daemon that starts children elsewhere is told beyond the capsule. */
struct approval_elsewhere {
    const char *delegation_id, *context_id;
    uint64_t bound_secs;
    uint64_t deadline_ms; /* Unix; 0: none */
};

void approval_clear (struct approval *a);

/* POST <roost_url>/spawn; <elsewhere> NULL: children are processes of this one. An ask for
 * elsewhere that was not heard is repeated, the daemon answers a delegation once. On a refusal the
 * error's message is the daemon's own sentence, or the transport's words: E-RUN-007. <cancel> may
 * be NULL. */
bool
approval_ask (struct http_client *http, const char *roost_url, const struct secret *credential,
              const char *name, const char *version, const struct approval_elsewhere *elsewhere,
              struct cancel *cancel, struct approval *out, struct mur_error **err);
