/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe of this process. See host.h.
 */
#include "sandbox/host.h"

#include <pthread.h>

static struct host_probe probe;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
run (void)
{
    host_probe_run (&probe);
}

const struct host_probe *
host_probe_once (void)
{
    pthread_once (&once, run);
    return &probe;
}

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
    const struct host_probe *p = host_probe_once ();
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
        .has_mount_namespace = p->mounts.state == PROBE_SUCCEEDED,
    };
}
