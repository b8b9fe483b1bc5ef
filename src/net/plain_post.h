/* SPDX-License-Identifier: Apache-2.0
 *
 * One POST over a connection of its own, in plain TCP: what span collectors are sent
 * (spec/records.md 11).
 *
 * Beside the pooled client because of what a collector is promised: these head lines and no others,
 * a connection each, and no half-close after the body.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct plain_post {
    const char *host; /* a name or an address; an IPv6 literal may be in brackets */
    const char *port; /* decimal */
    const char *path; /* "/v1/traces" */
    const char *content_type;
    const void *body;
    size_t body_len;
    uint64_t timeout_ms; /* for all of it, the name's resolution aside */
};

/* Sends it and reads the status line. Returns the status, or 0 with *err: E-IO-003 naming the
 * reason. */
int plain_post (const struct plain_post *post, struct mur_error **err);
