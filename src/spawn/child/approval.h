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
};

void approval_clear (struct approval *a);

/* POST <roost_url>/spawn. On a refusal the error's message is the daemon's own sentence, or the
 * transport's words: E-RUN-007. <cancel> may be NULL. */
bool approval_ask (struct http_client *http, const char *roost_url, const struct secret *credential,
                   const char *name, const char *version, struct cancel *cancel,
                   struct approval *out, struct mur_error **err);
