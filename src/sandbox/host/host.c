/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/host/host.h"

#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct host_probe probe;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- the helper --- */

static pid_t helper; /* 0: none */
static int helper_fd = -1;

static _noreturn_ void
help (int result_fd, pid_t parent)
{
    /* Nobody is left to look: the attempts end with what they wait for. */
    prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid () != parent)
        _exit (1);
    struct probe_children children;
    host_probe_make (&probe, &children);
    /* A copy of this very process reads it: what the steps' names point to is there too. */
    (void)fd_write_all (result_fd, &probe, sizeof probe);
    probe_children_reap (&children);
    _exit (0);
}

void
host_probe_start (void)
{
    int pair[2];
    if (helper || pipe2 (pair, O_CLOEXEC) < 0)
        return;
    pid_t parent = getpid (), pid = fork ();
    if (pid == 0)
        help (pair[1], parent);
    close (pair[1]);
    if (pid < 0) {
        close (pair[0]);
        return;
    }
    helper = pid;
    helper_fd = pair[0];
}

void
host_probe_stop (void)
{
    if (! helper)
        return;
    kill (helper, SIGKILL);
    while (waitpid (helper, NULL, 0) < 0 && errno == EINTR)
        ;
    close (helper_fd);
    helper = 0;
    helper_fd = -1;
}

static void
run (void)
{
    if (! helper || ! fd_read_exact (helper_fd, &probe, sizeof probe))
        host_probe_run (&probe);
}

const struct host_probe *
host_probe_once (void)
{
    pthread_once (&once, run);
    return &probe;
}

/* --- the decision --- */

static enum containment_tier
tier_of (const struct host_probe *p)
{
    if (p->landlock.state != PROBE_SUCCEEDED)
        return TIER_SECCOMP;
    return p->sealed.state == PROBE_SUCCEEDED ? TIER_SEALED : TIER_LANDLOCK;
}

struct host_containment
host_containment_facts (void)
{
    static char *scoped, *sealed;
    static const char *missing[WALL_COUNT + 1];
    const struct host_probe *p = host_probe_once ();
    static bool is_listed;
    for (size_t w = 0, count = 0; w < WALL_COUNT && ! is_listed; w++)
        if ((missing[count] = host_probe_missing_wall (p, (enum session_wall)w)))
            count++;
    is_listed = true;
    if (! scoped)
        scoped = host_probe_scoped_blocker (p);
    if (! sealed)
        sealed = host_probe_sealed_blocker (p);
    return (struct host_containment){
        .tier = tier_of (p),
        .userns_grant = userns_grant_name (p->userns),
        .landlock_abi = p->landlock_abi,
        .scoped_blocker = scoped,
        .sealed_blocker = sealed,
        .has_namespaces = p->network.state != PROBE_FAILED,
        .has_mount_namespace = p->mounts.state == PROBE_SUCCEEDED,
        .walls_network = p->walls_network,
        .missing_walls = missing,
    };
}

const struct containment *
host_decide (struct host_decision *d)
{
    if (d->is_taken)
        return &d->taken;
    struct host_containment host = { .tier = TIER_NONE };
    if (! d->is_without_host)
        host = host_containment_facts ();
    containment_decide (&host, d->floor, &d->capsule, &d->taken);
    d->is_taken = true;
    return &d->taken;
}

void
host_decision_clear (struct host_decision *d)
{
    if (d->is_taken)
        containment_clear (&d->taken);
    d->is_taken = false;
}
