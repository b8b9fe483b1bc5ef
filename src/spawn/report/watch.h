/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a delegated child to its end, so that there is always a completion record and its parent
 * always hears of it (spec/spawn.md A17). One thread a child.
 *
 * Always true: while a child that its parent ends winds down, nothing is done here, so that nothing
 * races the child's own record; what a child wrote is taken back only by its parent having ended
 * it.
 */
#pragma once

#include "spawn/child/child.h"
#include "spawn/report/completion.h"

struct watch;

/* Everything is borrowed until watch_free. */
struct watched {
    struct mur_child *child;
    struct http_client *http;
    const char *delegation_id;
    const char *capsule; /* full name */
    const char *version;
    struct completion_address address; /* of the parent's own door */
    uint64_t started_ms;               /* monotonic: where duration_ms counts from */
    uint64_t bound_secs;               /* the delegation's, counted from now */
    void (*on_done) (void *ctx);       /* once, on the thread, when nothing more will be done */
    void *ctx;
};

/* Starts it, once the child is ready. NULL when there is no thread to be had, which was said on
 * stderr: the launch goes on without. */
struct watch *watch_start (const struct watched *what);
/* True once the child has exited and its record is settled, or it was left. */
bool watch_is_done (struct watch *w);
/* Waits for that. */
bool watch_wait (struct watch *w, uint64_t timeout_ms);
/* Leaves the child to its parent: nothing is written or posted from here on. */
void watch_leave (struct watch *w);
/* Leaves and waits for the thread: at most what the kill ladder and one notice take. NULL is fine.
 */
void watch_free (struct watch *w);

/* Writes the record of a child its launcher has ended, undelivered and told to nobody. */
void watch_record_end (const struct watched *what, const char *detail);
