/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/network_listeners.h"

#include "base/alloc.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Any socket will do to ask for it: one that leaves the host may be refused to this process. */
static bool
bring_up_loopback (void)
{
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
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

/* A socket sees a copy of every packet of its protocol that the namespace delivers; the filter
 * drops all but the few that are worth reading, and the buffer bounds those. */
static int
open_refusals (int protocol, struct sock_filter *code, unsigned short len)
{
    struct sock_fprog program = { .len = len, .filter = code };
    int fd = socket (AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd >= 0 && setsockopt (fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0) {
        close (fd);
        return -1;
    }
    return fd;
}

#define KEPT_BYTES 400 /* headers and a question of DNS */

/* RST and ACK with sequence number 0: what the kernel answers where nobody listens. */
static int
open_refused_tcp (void)
{
    struct sock_filter code[] = {
        BPF_STMT (BPF_LDX | BPF_B | BPF_MSH, 0), /* length of the IP header */
        BPF_STMT (BPF_LD | BPF_B | BPF_IND, 13),
        BPF_STMT (BPF_ALU | BPF_AND | BPF_K, 0x3f),
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 0x14, 0, 3),
        BPF_STMT (BPF_LD | BPF_W | BPF_IND, 4),
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT (BPF_RET | BPF_K, KEPT_BYTES),
        BPF_STMT (BPF_RET | BPF_K, 0),
    };
    return open_refusals (IPPROTO_TCP, code, ARRAY_LEN (code));
}

/* Questions of DNS, and whatever goes to another address than loopback; no answers of DNS. */
static int
open_refused_udp (void)
{
    struct sock_filter code[] = {
        BPF_STMT (BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT (BPF_LD | BPF_H | BPF_IND, 0),
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 53, 5, 0),
        BPF_STMT (BPF_LD | BPF_H | BPF_IND, 2),
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 53, 2, 0),
        BPF_STMT (BPF_LD | BPF_B | BPF_ABS, 16), /* first byte of the address it goes to */
        BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, 127, 1, 0),
        BPF_STMT (BPF_RET | BPF_K, KEPT_BYTES),
        BPF_STMT (BPF_RET | BPF_K, 0),
    };
    return open_refusals (IPPROTO_UDP, code, ARRAY_LEN (code));
}

const char *
network_listeners_bind (const uint16_t *ports, size_t count, struct network_listeners *out)
{
    *out = (struct network_listeners)NETWORK_LISTENERS_NONE;
    if (! bring_up_loopback ())
        return "bring up lo";
    if (! add_local_default_route ())
        return "add the local default route";
    for (size_t i = 0; i < count; i++, out->count++)
        if ((out->tcp_fds[i] = bind_port (SOCK_STREAM, ports[i])) < 0)
            return "bind a listener";
    if (count && (out->dns_fd = bind_port (SOCK_DGRAM, 53)) < 0)
        return "bind UDP port 53";
    out->refused_tcp_fd = open_refused_tcp ();
    out->refused_udp_fd = open_refused_udp ();
    return NULL;
}

int
network_loopback_socket (int flags)
{
    static const char device[] = "lo";
    int fd = socket (AF_INET, SOCK_STREAM | flags, IPPROTO_TCP);
    if (fd >= 0 && setsockopt (fd, SOL_SOCKET, SO_BINDTODEVICE, device, sizeof device) < 0) {
        int saved = errno;
        close (fd);
        errno = saved;
        return -1;
    }
    return fd;
}

bool
network_loopback_is_had (void)
{
    int fd = network_loopback_socket (SOCK_CLOEXEC);
    if (fd >= 0)
        close (fd);
    return fd >= 0;
}

uint16_t
network_listeners_bind_proxy (struct network_listeners *out)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen (fd, 128) < 0 || getsockname (fd, (struct sockaddr *)&address, &len) < 0) {
        int saved = errno;
        if (fd >= 0)
            close (fd);
        errno = saved;
        return 0;
    }
    out->proxy_fd = fd;
    return ntohs (address.sin_port);
}

void
network_listeners_close (struct network_listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        close (listeners->tcp_fds[i]);
    const int others[] = { listeners->dns_fd, listeners->refused_tcp_fd, listeners->refused_udp_fd,
                           listeners->proxy_fd };
    for (size_t i = 0; i < ARRAY_LEN (others); i++)
        if (others[i] >= 0)
            close (others[i]);
    *listeners = (struct network_listeners)NETWORK_LISTENERS_NONE;
}
