/* SPDX-License-Identifier: Apache-2.0
 *
 * Who we are to a server of S3: the keys of the first place that has some.
 *
 * In order: the launching program, --secrets-dir, the configuration's credentials, the environment,
 * a role that a token of this pod is taken for (AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE),
 * a profile of ~/.aws/credentials. Always true: the parts of one login come from one place; files
 * are read for each request; a token goes over https or to this machine alone. Any thread.
 */
#pragma once

#include "net/http_client.h"
#include "trace/ship/s3_keys.h"
#include "trace/ship/s3_place.h"

struct s3_login;

/* <place> is borrowed. E-IO-003: the configuration cannot be read. */
struct s3_login *s3_login_new (const struct s3_place *place, struct mur_error **err);
void s3_login_free (struct s3_login *l);
DEFINE_CLEANUP (struct s3_login, s3_login_free)
/* The keys of now; a role's are asked for with <http>. E-IO-003: there are none, or the role is not
 * given. */
bool s3_login_keys (struct s3_login *l, struct http_client *http, struct s3_keys *out,
                    struct mur_error **err);
