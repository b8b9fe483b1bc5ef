/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of a session's delegations, as those who keep it and those who close it share it.
 */
#pragma once

#include "session/handoff/delegations.h"

#include <pthread.h>

struct delegations {
    struct session *session;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct delegation **items; /* in order of their ids */
    size_t len, cap;
    uint64_t news;     /* grows with everything a waiter should look at */
    struct strv taken; /* ids whose completion was taken and that are closed */
    uint64_t bound_secs;
};
