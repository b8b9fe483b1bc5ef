/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/disk_floor.h"

#include <sys/statvfs.h>
#include <sys/timerfd.h>

#define SOONEST_MS 250
#define LATEST_MS  10000
#define FASTEST    ((uint64_t)2 << 20) /* bytes a millisecond: no disk is filled faster */

int
disk_floor_open (struct disk_floor *f)
{
    if (f->path && f->bytes && f->timer_fd < 0)
        f->timer_fd = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return f->timer_fd;
}

/* 0: never. */
static void
look_in (struct disk_floor *f, uint64_t ms)
{
    f->is_armed = ms > 0;
    const struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
                                                   .tv_nsec = (long)(ms % 1000) * 1000000 } };
    timerfd_settime (f->timer_fd, 0, &when, NULL);
}

void
disk_floor_begin (struct disk_floor *f)
{
    struct statvfs disk;
    if (f->timer_fd < 0 || f->is_armed)
        return;
    if (! f->is_settled && statvfs (f->path, &disk) == 0) {
        uint64_t half = (uint64_t)disk.f_bavail * disk.f_frsize / 2;
        f->bytes = half < f->bytes ? half : f->bytes;
        f->is_settled = true;
    }
    look_in (f, SOONEST_MS);
}

bool
disk_floor_is_passed (struct disk_floor *f, bool runs)
{
    struct statvfs disk;
    if (! runs || statvfs (f->path, &disk) < 0) {
        look_in (f, runs ? LATEST_MS : 0); /* setting it takes the event away, too */
        return false;
    }
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t ms = left > f->bytes ? (left - f->bytes) / FASTEST : 0;
    look_in (f, ms < SOONEST_MS ? SOONEST_MS : ms > LATEST_MS ? LATEST_MS : ms);
    return left < f->bytes;
}
