/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile of the file people have their keys of S3 in: ~/.aws/credentials.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

#include <stdbool.h>

/* One value of the profile AWS_PROFILE, else "default", of AWS_SHARED_CREDENTIALS_FILE, else
 * ~/.aws/credentials; owned. NULL: no such file, profile or value. */
struct secret *s3_profile_value (const char *name);
/* What was looked for, for a person; owned. */
char *s3_profile_words (void);
