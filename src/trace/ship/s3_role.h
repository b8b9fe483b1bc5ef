/* SPDX-License-Identifier: Apache-2.0
 *
 * A role taken for a token the cluster gave this pod (IAM roles for service accounts): keys that
 * last an hour, from the security token service.
 */
#pragma once

#include "net/http_client.h"
#include "trace/ship/s3_keys.h"

#include <stdint.h>

/* AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE are both set. */
bool s3_role_is_named (void);
/* Asks for the role at AWS_ENDPOINT_URL_STS, else AWS_ENDPOINT_URL, else Amazon's of <region>.
 * E-IO-003. */
bool s3_role_take (struct http_client *http, const char *region, struct s3_keys *out,
                   uint64_t *ends_unix_ms, struct mur_error **err);
