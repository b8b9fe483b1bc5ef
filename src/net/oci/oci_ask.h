/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to a registry, with who we are shown when it asks: Basic, or a bearer token of the
 * token server it names.
 *
 * Always true: a token is kept in memory for its repository alone, and asked for anew once when it
 * is refused; what fails never holds a header's value.
 */
#pragma once

#include "net/http_fetch.h"
#include "net/oci/oci_client.h"

struct oci_asker;

struct oci_asker *oci_asker_new (const struct oci_options *options);
void oci_asker_free (struct oci_asker *a);
void oci_asker_set_cancel (struct oci_asker *a, struct cancel *cancel);

/* "https://host/v2/repository/<rest>", http where it may be, with the host the API is at. Owned. */
char *oci_ask_url (const struct oci_asker *a, const struct oci_ref *repository, const char *fmt,
                   ...) _printf_ (3, 4);

/* Performs <fetch>, whose headers hold no authorization; redirects are followed as it says. An
 * address of another origin than the registry's is asked without credentials. Any status but 401
 * and 403 is a success. E-REG-006, E-REG-012. */
bool oci_ask (struct oci_asker *a, const struct oci_ref *repository, const struct http_fetch *fetch,
              struct http_response *out, struct mur_error **err);
/* E-REG-006 with the status and what the registry says of it. Returns false. */
bool oci_refuse (const struct oci_ref *ref, const struct http_response *r, struct mur_error **err);
