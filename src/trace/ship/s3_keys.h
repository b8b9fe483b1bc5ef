/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of one login at a server of S3.
 */
#pragma once

#include "base/secret.h"

struct s3_keys {
    struct secret *id, *key, *token; /* <token> NULL: none */
};

void s3_keys_copy (const struct s3_keys *from, struct s3_keys *out);
void s3_keys_clear (struct s3_keys *keys);
#define _cleanup_s3_keys_ _cleanup_ (s3_keys_clear)
