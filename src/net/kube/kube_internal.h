/* SPDX-License-Identifier: Apache-2.0
 *
 * What calls and watches share of the client.
 */
#pragma once

#include "net/http_fetch.h"
#include "net/kube/kube.h"
#include "net/kube/kube_access.h"

struct kube {
    struct kube_access access; /* never changes */
    struct http_client *http;
};

/* The URL of a path, and the header that says who we are (owned; NULL: a certificate does). */
char *kube_url (const struct kube *k, const char *path);
char *kube_bearer (const struct kube *k);
