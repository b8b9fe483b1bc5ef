/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launcher hands to a `mur run` beside its arguments: a grant on standard input, the
 * spawner's handle, the formation's id and channel, lifelines (spec/spawn.md A9, A10, A13).
 *
 * Always true: no message holds a value that was handed over.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"
#include "spawn/child/spawner.h"
#include "spawn/formation/membership.h"
#include "spawn/remote/fleet_seat.h"

struct launcher_inputs {
    struct secret *grant; /* NULL: none */
    struct spawner spawner;
    char *formation_id;            /* NULL: none */
    struct membership *membership; /* NULL: no member */
    struct fleet_seat *seat;       /* of a formation of a fleet; NULL: none */
};

/* One line of standard input, for --spawn-grant-stdin. NULL with E-RUN-019 (no line, or what can be
 * no grant) or E-IO-003. */
struct secret *launcher_read_grant (struct mur_error **err);

/* The variables, in their order: blank is none. E-RUN-020, E-RUN-044, E-RUN-046; warns W-RUN-007.
 */
bool launcher_inputs_read (struct launcher_inputs *in, struct mur_error **err);
/* In place of the formation's variables: the seat of this pod, by its token of that file. After
 * them. E-RUN-019, E-RUN-045 to E-RUN-047, E-RUN-053, E-IO-003. */
bool
launcher_take_seat (struct launcher_inputs *in, const char *token_file, struct mur_error **err);
void launcher_inputs_clear (struct launcher_inputs *in);
