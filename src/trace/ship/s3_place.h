/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an address like s3://bucket/prefix leads: which server, which path, which region.
 *
 * Always true: nothing of it is secret, so it may stand in an argument and an object.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct s3_place {
    char *origin; /* "https://bucket.s3.eu-west-1.amazonaws.com", "http://127.0.0.1:9000" */
    char *host;   /* as the header says it: the default port left out */
    char *path;   /* "", "/prefix", "/bucket/prefix": escaped, without a slash at its end */
    char *region;
    bool is_private; /* https, or this machine */
};

/* s3://BUCKET[/PREFIX][?region=R][&endpoint=URL][&style=path|virtual]; what is not said comes from
 * AWS_REGION or AWS_DEFAULT_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. E-IO-003. */
bool s3_place_read (const char *url, struct s3_place *out, struct mur_error **err);
void s3_place_clear (struct s3_place *p);
/* A key as a path has it; owned. */
char *s3_escape (const char *key);
/* Where Amazon has a service of a region; owned. */
char *s3_amazons (const char *region, const char *service);
