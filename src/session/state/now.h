/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs at this moment, for whoever looks from another thread: the deadline, the door.
 *
 * All of it under its lock (base/locks.h: session). Always true: an answer that stands cannot be
 * thrown away by the deadline, because both are decided under this lock.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct running_task;

struct now {
    pthread_mutex_t lock;
    struct running_task *task; /* the task that runs, or NULL */
    bool has_standing_answer;
};
