/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's registration with mur-roost (spec/spawn.md A13).
 *
 * Always true: no token is in any message; the credential exists in memory alone.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/secret.h"
#include "net/http_client.h"

struct registrant {
    const char *session_id;
    const char *capsule_name; /* full */
    const char *capsule_version;
    const struct secret *grant; /* the approval that was handed over; NULL: none */
    const struct secret
        *pod_token; /* a fleet's pod: its projected token, in place of one; or NULL */
    json_t **fleet; /* a pod's: what the answer says of the fleet, owned; or NULL */
};

/* The projected token of a fleet's pod, which the cluster renews. Owned; NULL with E-RUN-019. */
struct secret *registration_pod_token (const char *path, struct mur_error **err);
/* POST <roost_url>/register; the credential (msc1), owned. NULL with E-RUN-019: the URL is not set,
 * the daemon cannot be reached, refused, or answered without a credential. */
struct secret *registration_ask (struct http_client *http, const char *roost_url,
                                 const struct registrant *who, struct mur_error **err);

/* POST <roost_url>/deregister with "complete" or "failed" and, of a delegated pod, how it ended
 * (else NULL), waiting at most that long. False with *reason owned. */
bool
registration_end (struct http_client *http, const char *roost_url, const struct secret *credential,
                  bool is_complete, const json_t *completion, uint64_t timeout_ms, char **reason);

/* Whether a daemon answers there (GET <roost_url>/health, waiting 2 s); registers nothing.
 * E-RUN-019.
 */
bool registration_probe (struct http_client *http, const char *roost_url, struct mur_error **err);

/* Fails with E-RUN-019 in the words that every such refusal has: the URL (NULL or blank: <unset>),
 * mur-roost, the reason, capabilities.spawn.allow. Always false. */
bool registration_refuse (const char *roost_url, const char *reason, struct mur_error **err);
