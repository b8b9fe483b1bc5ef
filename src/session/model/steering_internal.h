/* SPDX-License-Identifier: Apache-2.0
 *
 * What steers the calls to the model, for the files of this room alone.
 */
#pragma once

#include "session/model/steering.h"

#include <pthread.h>

struct steering {
    struct controller *controller;     /* NULL: no control plane */
    struct supplied_secrets *supplied; /* NULL: no control plane */
    struct selection *selection;       /* NULL for a script */

    /* One call of a driver at a time: an async hook may ask while the agent loop does. */
    pthread_mutex_t lock; /* a leaf (base/locks.h) */
    pthread_cond_t changed;
    bool is_driver_busy;
};
