/* SPDX-License-Identifier: Apache-2.0
 *
 * Authorities of a cluster's own: what a pod trusts beside those of its image.
 */
#pragma once

#include "base/json.h"

/* <ca>: the ConfigMap that has them as ca.crt; NULL: nothing is added. */
void authorities_of_container (const char *ca, json_t *env, json_t *mounts);
void authorities_of_pod (const char *ca, json_t *volumes);
