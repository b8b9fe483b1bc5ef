/* SPDX-License-Identifier: Apache-2.0
 *
 * Many launches of one capsule through include/murmur/child.h, timed: for the bench and for what a
 * launcher must not keep.
 *
 *   launch-many CAPSULE VERSION PARENT_RECORDS_DIR ROOST_URL AT_ONCE <approvals
 *
 * One approval a line on stdin is one launch; AT_ONCE threads take them in turn. One line of
 * microseconds for each launch, from the approval in hand to the readiness line, then one line
 * "descriptors N": how many more are open after every handle was freed.
 */
#include "murmur/child.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_AT_ONCE 64

struct work {
    struct mur_child_launch launch; /* but for the approval */
    struct strv approvals;
    atomic_size_t next;
    atomic_bool has_failed;
};

static bool
launch_one (struct work *w, const char *approval)
{
    struct mur_error *err = NULL;
    struct mur_child_launch l = w->launch;
    l.approval = approval;
    uint64_t begun_us = clock_monotonic_us ();
    struct mur_child *c = mur_child_launch (&l, &err);
    uint64_t took_us = clock_monotonic_us () - begun_us;
    if (! c) {
        fprintf (stderr, "%s\n", err->message);
        mur_error_free (err);
        return false;
    }
    printf ("%llu\n", (unsigned long long)took_us);
    mur_child_free (c);
    return true;
}

static void *
launch_in_turn (void *ctx)
{
    struct work *w = ctx;
    for (size_t i; (i = atomic_fetch_add (&w->next, 1)) < w->approvals.len;)
        if (! launch_one (w, w->approvals.items[i]))
            w->has_failed = true;
    return NULL;
}

static long
count_descriptors (void)
{
    long count = 0;
    _cleanup_closedir_ DIR *dir = opendir ("/proc/self/fd");
    while (dir && readdir (dir))
        count++;
    return count;
}

static void
read_approvals (struct strv *out)
{
    _cleanup_free_ char *line = NULL;
    size_t cap = 0;
    for (ssize_t len; (len = getline (&line, &cap, stdin)) > 0;) {
        line[strcspn (line, "\n")] = '\0';
        strv_push (out, line);
    }
}

int
main (int argc, char **argv)
{
    if (argc != 6)
        return 2;
    struct work w = { .launch = { .capsule = argv[1],
                                  .version = argv[2],
                                  .parent_records_dir = argv[3],
                                  .roost_url = argv[4] } };
    int at_once = atoi (argv[5]);
    if (at_once < 1 || at_once > MOST_AT_ONCE)
        return 2;
    signal (SIGPIPE, SIG_IGN);
    read_approvals (&w.approvals);
    pthread_t threads[MOST_AT_ONCE];
    long held = count_descriptors ();
    for (int i = 0; i < at_once; i++)
        if (pthread_create (&threads[i], NULL, launch_in_turn, &w))
            return 1;
    for (int i = 0; i < at_once; i++)
        pthread_join (threads[i], NULL);
    printf ("descriptors %ld\n", count_descriptors () - held);
    strv_free (&w.approvals);
    return w.has_failed ? 1 : 0;
}
