/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating and joining the session's network namespace. See network_namespace.h.
 */
#include "sandbox/kernel/network_namespace.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Steps are sent as indices, so that the parent owns the words. */
enum step {
    STEP_UNSHARE,
    STEP_SETGROUPS,
    STEP_UID_MAP,
    STEP_GID_MAP,
    STEP_LOOPBACK,
    STEP_ROUTE,
    STEP_LISTEN,
    STEP_DNS,
    STEP_OPEN,
    STEP_SEND,
    STEP_FORK,
    STEP_LOST,
};

static const char *const step_names[] = {
    [STEP_UNSHARE] = "unshare(CLONE_NEWUSER|CLONE_NEWNET)",
    [STEP_SETGROUPS] = "write /proc/self/setgroups",
    [STEP_UID_MAP] = "write /proc/self/uid_map",
    [STEP_GID_MAP] = "write /proc/self/gid_map",
    [STEP_LOOPBACK] = "bring up lo",
    [STEP_ROUTE] = "add the local default route",
    [STEP_LISTEN] = "bind a listener",
    [STEP_DNS] = "bind UDP port 53",
    [STEP_OPEN] = "open /proc/self/ns",
    [STEP_SEND] = "send the namespace descriptors",
    [STEP_FORK] = "fork",
    [STEP_LOST] = "read from the namespace creator",
};

struct failure_record {
    int32_t step;
    int32_t errno_value;
};

static _noreturn_ void
give_up (int socket_fd, enum step step)
{
    struct failure_record record = { (int32_t)step, errno };
    ssize_t sent _unused_ = send (socket_fd, &record, sizeof record, 0);
    _exit (1);
}

static bool
bring_up_loopback (void)
{
    int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = { .ifr_name = "lo" };
    if (fd < 0 || ioctl (fd, SIOCGIFFLAGS, &request) < 0)
        return false;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    bool is_up = ioctl (fd, SIOCSIFFLAGS, &request) == 0;
    close (fd);
    return is_up;
}

/* ip route add local default dev lo table local */
static bool
add_local_default_route (void)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr attr;
        uint32_t oif;
    } request = {
        .head = { .nlmsg_len = sizeof request,
                  .nlmsg_type = RTM_NEWROUTE,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
        .route = { .rtm_family = AF_INET,
                   .rtm_table = RT_TABLE_LOCAL,
                   .rtm_protocol = RTPROT_STATIC,
                   .rtm_scope = RT_SCOPE_HOST,
                   .rtm_type = RTN_LOCAL },
        .attr = { .rta_len = RTA_LENGTH (sizeof (uint32_t)), .rta_type = RTA_OIF },
        .oif = 1, /* lo is the first interface of every network namespace */
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } answer;
    int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || send (fd, &request, sizeof request, 0) < 0 ||
        recv (fd, &answer, sizeof answer, 0) < (ssize_t)sizeof answer)
        return false;
    close (fd);
    errno = -answer.error.error;
    return answer.error.error == 0;
}

static int
bind_port (int type, uint16_t port)
{
    int one = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons (port) };
    int fd = socket (AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (type == SOCK_DGRAM)
        setsockopt (fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
    if (bind (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        (type == SOCK_STREAM && listen (fd, 128) < 0))
        return -1;
    return fd;
}

#define MAX_FDS (NETWORK_NAMESPACE_MAX_PORTS + 3)

static bool
send_fds (int socket_fd, const int *fds, size_t count)
{
    struct failure_record nothing = { -1, 0 };
    struct iovec data = { &nothing, sizeof nothing };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof (int) * MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = CMSG_SPACE (sizeof (int) * count) };
    struct cmsghdr *c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (sizeof (int) * count);
    memcpy (CMSG_DATA (c), fds, sizeof (int) * count);
    return sendmsg (socket_fd, &message, 0) >= 0;
}

static _noreturn_ void
creator (int socket_fd, const uint16_t *ports, size_t count, unsigned uid, unsigned gid)
{
    if (unshare (CLONE_NEWUSER | CLONE_NEWNET) < 0)
        give_up (socket_fd, STEP_UNSHARE);
    const char *failed = child_write_id_maps (uid, gid);
    if (failed)
        give_up (socket_fd, failed[0] == 's'   ? STEP_SETGROUPS
                            : failed[0] == 'u' ? STEP_UID_MAP
                                               : STEP_GID_MAP);
    if (! bring_up_loopback ())
        give_up (socket_fd, STEP_LOOPBACK);
    if (! add_local_default_route ())
        give_up (socket_fd, STEP_ROUTE);
    int fds[MAX_FDS];
    size_t len = 2;
    for (size_t i = 0; i < count; i++)
        if ((fds[len++] = bind_port (SOCK_STREAM, ports[i])) < 0)
            give_up (socket_fd, STEP_LISTEN);
    if (count && (fds[len++] = bind_port (SOCK_DGRAM, 53)) < 0)
        give_up (socket_fd, STEP_DNS);
    fds[0] = open ("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    fds[1] = open ("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fds[0] < 0 || fds[1] < 0)
        give_up (socket_fd, STEP_OPEN);
    if (! send_fds (socket_fd, fds, len))
        give_up (socket_fd, STEP_SEND);
    _exit (0);
}

/* Receives either the descriptors or a failure record. */
static bool
receive (int socket_fd, size_t count, struct network_namespace *ns, struct attempt_failure *failure)
{
    struct failure_record record = { STEP_LOST, 0 };
    struct iovec data = { &record, sizeof record };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE (sizeof (int) * MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t n;
    do
        n = recvmsg (socket_fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    size_t expected = count ? count + 3 : 2;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR (&message) : NULL;
    if (! c || c->cmsg_len != CMSG_LEN (sizeof (int) * expected)) {
        bool is_record = n == (ssize_t)sizeof record && record.step >= 0 &&
                         record.step < (int32_t)ARRAY_LEN (step_names);
        *failure = (struct attempt_failure){ step_names[is_record ? record.step : STEP_LOST],
                                             is_record ? record.errno_value : EPIPE };
        return false;
    }
    int fds[MAX_FDS];
    memcpy (fds, CMSG_DATA (c), sizeof (int) * expected);
    *ns = (struct network_namespace){ .user_fd = fds[0],
                                      .net_fd = fds[1],
                                      .listener_count = count,
                                      .dns_fd = count ? fds[2 + count] : -1 };
    memcpy (ns->listener_fds, fds + 2, sizeof (int) * count);
    return true;
}

bool
network_namespace_create (const uint16_t *ports, size_t count, struct network_namespace *ns,
                          struct attempt_failure *failure)
{
    *ns = (struct network_namespace){ .user_fd = -1, .net_fd = -1, .dns_fd = -1 };
    int pair[2];
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        *failure = (struct attempt_failure){ step_names[STEP_FORK], errno };
        return false;
    }
    unsigned uid = geteuid (), gid = getegid ();
    pid_t pid = fork ();
    if (pid == 0)
        creator (pair[1], ports, count, uid, gid);
    int saved = errno;
    close (pair[1]);
    bool is_created = false;
    if (pid < 0)
        *failure = (struct attempt_failure){ step_names[STEP_FORK], saved };
    else
        is_created = receive (pair[0], count, ns, failure);
    close (pair[0]);
    while (pid > 0 && waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return is_created;
}

void
network_namespace_close (struct network_namespace *ns)
{
    for (size_t i = 0; i < ns->listener_count; i++)
        close (ns->listener_fds[i]);
    const int fds[] = { ns->user_fd, ns->net_fd, ns->dns_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
    *ns = (struct network_namespace){ .user_fd = -1, .net_fd = -1, .dns_fd = -1 };
}

const char *
network_namespace_join (const struct network_namespace *ns)
{
    if (setns (ns->user_fd, CLONE_NEWUSER) < 0)
        return "setns(user)";
    return setns (ns->net_fd, CLONE_NEWNET) < 0 ? "setns(net)" : NULL;
}
