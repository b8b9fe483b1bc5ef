/* SPDX-License-Identifier: Apache-2.0
 *
 * A floor of free disk: how often to look while commands run, and whether they went through it.
 *
 * Always true: the floor is at most half of what was free when the first command began, so that a
 * disk that was full before stops nobody by itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct disk_floor {
    const char *path; /* NULL: nothing is looked at */
    uint64_t bytes;
    bool is_settled; /* bytes is what holds, not what was asked for */
    bool is_armed;
    int timer_fd;
};

/* Opens the timer; a descriptor of <f>, -1 where there is nothing to watch or no timer. */
int disk_floor_open (struct disk_floor *f);
/* A command runs: a look comes soon, unless one is set already. */
void disk_floor_begin (struct disk_floor *f);
/* The timer fired. True when less than the floor is free; another look is set while <runs>. */
bool disk_floor_is_passed (struct disk_floor *f, bool runs);
