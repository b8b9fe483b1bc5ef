/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/no_sockets.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static void
release (scmp_filter_ctx *ctx)
{
    if (*ctx)
        seccomp_release (*ctx);
}

/* socket () of every family, or of those that leave the host; io_uring opens sockets of its own. */
static int
add_rules (scmp_filter_ctx ctx, bool keeps_local)
{
    const uint32_t refuse = SCMP_ACT_ERRNO (EPERM);
    int rc = seccomp_rule_add (ctx, refuse, SCMP_SYS (io_uring_setup), 0);
    if (rc != 0)
        return rc;
    if (! keeps_local)
        return seccomp_rule_add (ctx, refuse, SCMP_SYS (socket), 0);
    static const int kept[] = { AF_UNIX, AF_NETLINK };
    for (int family = 0; family < AF_MAX && rc == 0; family++)
        if (family != kept[0] && family != kept[1])
            rc = seccomp_rule_add (ctx, refuse, SCMP_SYS (socket), 1,
                                   SCMP_A0 (SCMP_CMP_EQ, (scmp_datum_t)family));
    return rc;
}

bool
no_sockets_enter (bool keeps_local, struct mur_error **err)
{
    __attribute__ ((cleanup (release))) scmp_filter_ctx ctx = seccomp_init (SCMP_ACT_ALLOW);
    int rc = ctx ? 0 : -ENOMEM;
    rc = rc ? rc : seccomp_attr_set (ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    rc = rc ? rc : add_rules (ctx, keeps_local);
    rc = rc ? rc : seccomp_load (ctx);
    errno = -rc;
    return rc == 0 || mur_fail_errno (err, E_RUN_012, "the network cannot be taken from a replay");
}
