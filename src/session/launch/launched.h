/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch holds, for this room alone.
 */
#pragma once

#include "session/state/deadline.h"

#include <stddef.h>

struct launched {
    struct termination *termination; /* NULL: not armed */
    struct deadline deadline;
    struct fleet_lifeline
        *fleet_lifeline; /* NULL: the parent is on this machine, or there is none */
    /* Of a script: what it pulled and sent, not recorded yet. */
    struct pulled *script_pulls;
    size_t script_pull_count;
    struct script_sends *script_sends; /* NULL: none */
};

/* Its deadline becomes the session's. */
void launched_new (struct session *s);
void launched_free (struct session *s);
