/* SPDX-License-Identifier: Apache-2.0
 *
 * What drivers of coding agents share beside murmur_process.h: the gateway that a harness may be
 * pointed at, members of its config that are lists of words, and failures told by their status.
 */
#ifndef MURMUR_HARNESS_H
#define MURMUR_HARNESS_H

#include "murmur_process.h"

/* Where the provider is reached without a key of its own: the runtime puts the real one in. The
 * runtime hands it as the member "$gateway" of the config. */
struct mur_gateway {
    char *base_url;    /* NULL: the harness has an account of its own */
    char *placeholder; /* what stands where a key is wanted */
};

struct mur_gateway mur_harness_gateway (const struct mur_json *config);
/* Adds each word of a list as an argument; false when the member is there and no list of texts. */
bool mur_harness_args (struct mur_plan *plan, const struct mur_json *config, const char *member);
/* The words of a list joined by commas; NULL when there are none. */
char *mur_harness_joined (const struct mur_json *config, const char *member);
/* Refuses the run for a member the driver does not know: a misspelt one would be silent. */
bool mur_harness_known (struct mur_plan *plan, const struct mur_json *config,
                        const char *const *members);
/* The node as it stands, for JSON of our own: null when it is absent or no JSON by the letter. */
char *mur_harness_value (const struct mur_json *json, mur_node node);
/* Likewise an object; {} when it is none. */
char *mur_harness_object (const struct mur_json *json, mur_node node);
/* 401 and 403 are the account's, 402 and 429 the quota's; 0 is judged by the words. */
enum mur_turn_failure mur_harness_failure (int status, const char *message);

#endif
