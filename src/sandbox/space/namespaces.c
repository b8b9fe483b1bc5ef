/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/space/namespaces.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/space/namespace_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* An init that does not end by then has a child of ours left in its namespace. */
#define INIT_END_MS 2000

static const struct {
    const char *name, *meaning;
} walls[] = {
    [WALL_PROCESSES] = { "process namespace",
                         "a command can see other processes of this user; only those of the "
                         "runtime are kept from its signals" },
    [WALL_IPC] = { "IPC namespace",
                   "System V and POSIX queues, semaphores and shared memory are refused instead" },
    [WALL_HOST_NAME] = { "host name namespace",
                         "the host's name is shown and cannot be set, with or without" },
    [WALL_CONTROL_GROUP] = { "control group namespace",
                             "a command can read where in the host's control groups it runs" },
    [WALL_PROC] = { "/proc of its own", "a command cannot read /proc, or sees the host's" },
};

const char *
session_wall_name (enum session_wall wall)
{
    return walls[wall].name;
}

const char *
session_wall_meaning (enum session_wall wall)
{
    return walls[wall].meaning;
}

bool
session_wall_is_relied_on (enum session_wall wall)
{
    return wall == WALL_PROCESSES || wall == WALL_IPC;
}

/* --- making --- */

/* Takes the descriptors of one report over. */
static void
take_fds (struct session_namespaces *ns, const struct maker_report *r, const int *fds, size_t count)
{
    size_t at = 0;
    for (; at < r->slot_count && at < count; at++)
        ns->fds[r->slots[at]] = fds[at];
    for (size_t i = 0; i < r->listener_count && at < count; i++)
        ns->listeners.tcp_fds[ns->listeners.count++] = fds[at++];
    if (r->has_dns && at < count)
        ns->listeners.dns_fd = fds[at++];
    if (r->has_refused_tcp && at < count)
        ns->listeners.refused_tcp_fd = fds[at++];
    if (r->has_refused_udp && at < count)
        ns->listeners.refused_udp_fd = fds[at++];
}

/* One report; false at the end of them. */
static bool
receive (int socket_fd, struct session_namespaces *ns, bool *has_init,
         struct namespace_failure *failure)
{
    struct maker_report report = { 0 };
    struct iovec data = { &report, sizeof report };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof (int) * MAKER_MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t n;
    do
        n = recvmsg (socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof report)
        return false;
    int fds[MAKER_MAX_FDS];
    struct cmsghdr *c = CMSG_FIRSTHDR (&message);
    size_t count = c ? (c->cmsg_len - CMSG_LEN (0)) / sizeof (int) : 0;
    if (count)
        memcpy (fds, CMSG_DATA (c), sizeof (int) * count);
    take_fds (ns, &report, fds, count);
    for (size_t i = 0; i < WALL_COUNT; i++)
        if (report.missing[i].step)
            ns->missing[i] = report.missing[i];
    *has_init |= report.is_init;
    if (report.failure.attempt.step)
        *failure = report.failure;
    return true;
}

static void
reap (pid_t pid)
{
    while (pid > 0 && waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static bool
hear (int socket_fd, struct session_namespaces *ns, struct namespace_failure *failure)
{
    bool has_init = false;
    *failure = (struct namespace_failure){ { "read from the namespace maker", EPIPE }, false, "" };
    while (receive (socket_fd, ns, &has_init, failure))
        ;
    return has_init;
}

bool
session_namespaces_make (const struct namespace_request *request, struct session_namespaces *out,
                         struct namespace_failure *failure)
{
    *out = (struct session_namespaces)SESSION_NAMESPACES_NONE;
    _cleanup_close_ int runtime_fd = (int)syscall (SYS_pidfd_open, getpid (), 0);
    int pair[2], control[2];
    *failure = (struct namespace_failure){ { "fork", 0 }, false, "" };
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        failure->attempt.errno_value = errno;
        return false;
    }
    if (pipe2 (control, O_CLOEXEC) < 0) {
        failure->attempt.errno_value = errno;
        close (pair[0]);
        close (pair[1]);
        return false;
    }
    struct maker maker = { request, pair[1], control[0], runtime_fd, geteuid (), getegid () };
    pid_t pid = fork ();
    if (pid == 0) {
        close (control[1]);
        namespace_maker_run (&maker);
    }
    failure->attempt.errno_value = errno;
    close (pair[1]);
    close (control[0]);
    out->control_fd = control[1];
    bool is_made = pid > 0 && hear (pair[0], out, failure);
    close (pair[0]);
    reap (pid);
    if (! is_made)
        session_namespaces_close (out);
    return is_made;
}

void
session_namespaces_close (struct session_namespaces *ns)
{
    if (ns->control_fd >= 0)
        close (ns->control_fd);
    siginfo_t info;
    int init_fd = ns->fds[NS_INIT];
    if (init_fd >= 0 && fd_wait (init_fd, POLLIN, INIT_END_MS) > 0)
        while (waitid (P_PIDFD, (id_t)init_fd, &info, WEXITED) < 0 && errno == EINTR)
            ;
    for (size_t i = 0; i < NS_FD_COUNT; i++)
        if (ns->fds[i] >= 0)
            close (ns->fds[i]);
    network_listeners_close (&ns->listeners);
    *ns = (struct session_namespaces)SESSION_NAMESPACES_NONE;
}

void
session_namespaces_kill_all (const struct session_namespaces *ns)
{
    if (ns->fds[NS_PROCESSES] >= 0 && ns->control_fd >= 0) {
        ssize_t written _unused_ = write (ns->control_fd, "k", 1);
    }
}

/* --- joining (child) --- */

const char *
session_namespaces_join_outer (const struct session_namespaces *ns)
{
    if (ns->fds[NS_USER] >= 0 && setns (ns->fds[NS_USER], CLONE_NEWUSER) < 0)
        return "setns(user)";
    if (ns->fds[NS_PROCESSES] >= 0 && setns (ns->fds[NS_PROCESSES], CLONE_NEWPID) < 0)
        return "setns(pid)";
    return NULL;
}

const char *
session_namespaces_join (const struct session_namespaces *ns)
{
    static const struct {
        enum namespace_fd slot;
        int type;
        const char *step;
    } steps[] = {
        { NS_NET, CLONE_NEWNET, "setns(net)" },
        { NS_IPC, CLONE_NEWIPC, "setns(ipc)" },
        { NS_HOST_NAME, CLONE_NEWUTS, "setns(uts)" },
        { NS_CONTROL_GROUP, CLONE_NEWCGROUP, "setns(cgroup)" },
        /* Owner of the mounts: the command holds no right over the network of the outer one. */
        { NS_ROOT_USER, CLONE_NEWUSER, "setns(user)" },
        { NS_MOUNTS, CLONE_NEWNS, "setns(mnt)" },
    };
    for (size_t i = 0; i < ARRAY_LEN (steps); i++)
        if (ns->fds[steps[i].slot] >= 0 && setns (ns->fds[steps[i].slot], steps[i].type) < 0)
            return steps[i].step;
    /* By descriptor: what lies at its path below a temporary folder is a command's to choose. */
    if (ns->fds[NS_WORK] >= 0 && fchdir (ns->fds[NS_WORK]) < 0)
        return "chdir to the work folder";
    return NULL;
}
