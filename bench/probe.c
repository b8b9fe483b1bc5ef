/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the host probe takes until everything is known: `bench-probe RUNS` prints the median in
 * milliseconds. A process of its own, because a launch makes the probe once and beside its other
 * work.
 */
#include "sandbox/host/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double
now_ms (void)
{
    struct timespec t;
    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int
main (int argc, char **argv)
{
    int runs = argc > 1 ? atoi (argv[1]) : 1;
    double *took = calloc ((size_t)(runs > 0 ? runs : 1), sizeof *took);
    if (! took || runs < 1)
        return 2;
    for (int i = 0; i < runs; i++) {
        struct host_probe probe;
        struct probe_children children;
        double began = now_ms ();
        host_probe_make (&probe, &children);
        took[i] = now_ms () - began;
        probe_children_reap (&children);
    }
    qsort (took, (size_t)runs, sizeof *took, compare);
    printf ("%.3f\n", took[runs / 2]);
    free (took);
    return 0;
}
