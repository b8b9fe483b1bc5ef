/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest's clocks, random numbers and HTTP where they are recorded or given again.
 */
#pragma once

#include "engine/engine.h"
#include "net/guest_http.h"

struct guest_setup;
struct senses;
struct session;

/* NULL where a guest has them from the host and nobody keeps them. */
struct senses *senses_new (struct session *s, const struct guest_setup *setup);
/* Fills in what of a guest's specification is theirs. */
void senses_fill (struct senses *x, struct guest_spec *spec);
/* Who looks on at the guest's HTTP; NULL: nobody. */
const struct guest_http_watch *senses_watch (const struct senses *x);
struct http_tape *senses_http (const struct senses *x);
/* What was read since the last time is on record, should the session be killed now. x may be NULL.
 */
void senses_keep (struct senses *x);
void senses_free (struct senses *x);
