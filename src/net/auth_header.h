/* SPDX-License-Identifier: Apache-2.0
 *
 * Which header may carry a provider's key: what a manifest is checked against when it is read and a
 * gateway when it is made. In a header because the two are linked apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

/* True for a header that steers the connection or the message and so never carries a key; in any
 * letter case. */
static inline bool
auth_header_is_reserved (const char *name)
{
    static const char *const reserved[] = {
        "host",
        "origin",
        "referer",
        "cookie",
        "connection",
        "content-length",
        "content-type",
        "content-encoding",
        "expect",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    };
    for (size_t i = 0; i < sizeof (reserved) / sizeof (reserved[0]); i++)
        if (strcasecmp (name, reserved[i]) == 0)
            return true;
    return false;
}
