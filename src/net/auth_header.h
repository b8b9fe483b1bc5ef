/* SPDX-License-Identifier: Apache-2.0
 *
 * Which header may carry a provider's key: what a manifest is checked against when it is read and a
 * gateway when it is made. In a header because the two are linked apart.
 */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
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

/* NULL, or what is wrong with a header that is to carry a key. Static. */
static inline const char *
auth_header_fault (const char *name)
{
    if (! *name)
        return "it is empty";
    for (const char *p = name; *p; p++)
        if (! isascii (*p) || (! isalnum ((unsigned char)*p) && ! strchr ("!#$%&'*+-.^_`|~", *p)))
            return "it is no HTTP field name";
    return auth_header_is_reserved (name) ? "this header is not for credentials" : NULL;
}

/* How a key stands in a header whose name alone is known. Static. */
static inline const char *
auth_header_value (const char *name)
{
    return strcasecmp (name, "authorization") == 0 ? "Bearer {key}" : "{key}";
}
