/* SPDX-License-Identifier: Apache-2.0
 *
 * Rendered objects, handed to the API server of a cluster by kubectl.
 *
 * Always true: nothing is changed before the server has said, by a dry run, that it takes all of
 * it; a Job that runs is never started a second time, nor replaced unasked.
 */
#pragma once

#include "cli/deploy/kubectl.h"
#include "deploy/deploy.h"

struct handing {
    struct kubectl kubectl;
    const struct deploy_files *files;
    const struct buf *objects; /* all of them, as documents */
    bool is_dry;               /* the server is asked, and nothing is changed */
    bool replaces;             /* a Job of the same name is ended first */
};

/* E-DEP-006, E-DEP-007. */
bool handing_carry_out (const struct handing *h, struct mur_error **err);
