/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_keys.h"

#include "base/cleanup.h"

void
s3_keys_clear (struct s3_keys *k)
{
    secret_freep (&k->id);
    secret_freep (&k->key);
    secret_freep (&k->token);
}

void
s3_keys_copy (const struct s3_keys *from, struct s3_keys *out)
{
    *out = (struct s3_keys){ from->id ? secret_copy (from->id) : NULL,
                             from->key ? secret_copy (from->key) : NULL,
                             from->token ? secret_copy (from->token) : NULL };
}
