/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod's place in a formation whose launcher is mur-roost (docs/fleet.md): asked for by the pod's
 * projected token, and handed on as a launcher of this machine would, by a channel and a lifeline
 * (spec/spawn.md C5, C7).
 *
 * Always true: an entry has its seat once every peer's door answers, or not at all; tokens are in
 * answers and in the channel alone; losing the referee ends nothing.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct fleet_seat;

/* Waits for it; gives the process its formation lifeline. NULL with E-RUN-019 (no referee that can
 * be asked, or it knows no such pod), E-RUN-045, E-RUN-047, E-RUN-053 (the formation does not come
 * up), E-RUN-046 (it has ended), E-IO-003. */
struct fleet_seat *
fleet_seat_take (const char *roost_url, const char *token_file, struct mur_error **err);
/* Nothing more is heard. May be NULL. */
void fleet_seat_free (struct fleet_seat *s);

/* "frm_..."; borrowed. */
const char *fleet_seat_formation (const struct fleet_seat *s);
/* The formation's deadline, Unix milliseconds; 0: none. */
uint64_t fleet_seat_deadline_ms (const struct fleet_seat *s);
/* The read end of the channel, once; the caller's from then on. */
int fleet_seat_channel (struct fleet_seat *s);
