/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/callers.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "home/roost_socket.h"
#include "home/running.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TOKEN_BYTES 32

/* --- listening --- */

int
callers_bind_tcp (uint16_t port, uint16_t *bound, struct mur_error **err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons (port),
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int one = 1;
    _cleanup_close_ int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen (fd, 1024) < 0 || getsockname (fd, (struct sockaddr *)&address, &len) < 0)
        return mur_fail_errno (err, E_RUN_010, "cannot listen on 127.0.0.1:%u", port), -1;
    *bound = ntohs (address.sin_port);
    return steal_fd (&fd);
}

/* Nobody answers at a socket that was left behind. */
static bool
is_served (const struct sockaddr_un *address)
{
    _cleanup_close_ int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect (fd, (const struct sockaddr *)address, sizeof *address) == 0;
}

int
callers_bind_socket (const char *path, struct mur_error **err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char reach[ROOST_REACH_MAX];
    _cleanup_close_ int folder = roost_socket_reach (path, reach);
    if (folder < 0)
        return mur_fail_errno (err, E_RUN_010, "cannot listen on %s", path), -1;
    memcpy (address.sun_path, reach, strlen (reach) + 1);
    if (is_served (&address))
        return mur_fail (err, E_RUN_010, "a daemon listens on %s already", path), -1;
    (void)unlink (reach);
    _cleanup_close_ int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t before = umask (0177);
    bool is_bound = fd >= 0 && bind (fd, (struct sockaddr *)&address, sizeof address) == 0;
    int saved = errno;
    umask (before);
    errno = saved;
    if (! is_bound || listen (fd, 1024) < 0)
        return mur_fail_errno (err, E_RUN_010, "cannot listen on %s", path), -1;
    return steal_fd (&fd);
}

/* --- who it is --- */

#define NOT_FOUND   (-1)
#define NOBODY_TOLD (-2)

/* The kernel is asked for the very socket of the other end: its answer costs the same however many
 * connections this machine has. */
static int64_t
owner_by_diag (const struct sockaddr_in *ours, const struct sockaddr_in *theirs)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } message = { .head = { .nlmsg_len = sizeof message,
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST },
                  .ask = { .sdiag_family = AF_INET,
                           .sdiag_protocol = IPPROTO_TCP,
                           .idiag_states = UINT32_MAX,
                           .id = { .idiag_sport = theirs->sin_port,
                                   .idiag_dport = ours->sin_port,
                                   .idiag_src = { theirs->sin_addr.s_addr },
                                   .idiag_dst = { ours->sin_addr.s_addr },
                                   .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } } };
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    _cleanup_close_ int fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || send (fd, &message, sizeof message, 0) < 0)
        return NOBODY_TOLD;
    ssize_t len = recv (fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (len < 0 || ! NLMSG_OK (&answer.head, (size_t)len))
        return NOBODY_TOLD;
    if (answer.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *e = NLMSG_DATA (&answer.head);
        return e->error == -ENOENT ? NOT_FOUND : NOBODY_TOLD;
    }
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.head.nlmsg_len < NLMSG_LENGTH (sizeof (struct inet_diag_msg)))
        return NOBODY_TOLD;
    /* Where there is no such connection the kernel may name who listens at that port. */
    const struct inet_diag_msg *found = NLMSG_DATA (&answer.head);
    bool is_it = found->id.idiag_sport == theirs->sin_port &&
                 found->id.idiag_dport == ours->sin_port &&
                 found->id.idiag_src[0] == theirs->sin_addr.s_addr &&
                 found->id.idiag_dst[0] == ours->sin_addr.s_addr;
    return is_it && found->idiag_inode ? (int64_t)found->idiag_uid : NOT_FOUND;
}

/* For a kernel that has no such question: the table of all connections. */
static int64_t
owner_by_table (const struct sockaddr_in *ours, const struct sockaddr_in *theirs)
{
    char wanted[64], line[256];
    snprintf (wanted, sizeof wanted, "%08X:%04X %08X:%04X", theirs->sin_addr.s_addr,
              ntohs (theirs->sin_port), ours->sin_addr.s_addr, ntohs (ours->sin_port));
    FILE *table = fopen ("/proc/net/tcp", "re");
    int64_t owner = NOT_FOUND;
    while (table && owner < 0 && fgets (line, sizeof line, table)) {
        char *at = strstr (line, wanted);
        unsigned uid, inode;
        if (at && sscanf (at + strlen (wanted), " %*x %*s %*s %*s %u %*d %u", &uid, &inode) == 2 &&
            inode)
            owner = uid;
    }
    if (table)
        fclose (table);
    return owner;
}

/* The user a TCP connection of this machine belongs to; below 0: not found. */
static int64_t
owner_of_tcp (const struct sockaddr_in *ours, const struct sockaddr_in *theirs)
{
    int64_t owner = owner_by_diag (ours, theirs);
    return owner == NOBODY_TOLD ? owner_by_table (ours, theirs) : owner;
}

struct caller
caller_of (int fd)
{
    struct caller c = { 0 };
    struct ucred peer;
    struct sockaddr_in ours = { 0 }, theirs = { 0 };
    socklen_t len = sizeof ours, peer_len = sizeof peer, their_len = sizeof theirs;
    if (getsockname (fd, (struct sockaddr *)&ours, &len) < 0)
        return c;
    if (ours.sin_family == AF_INET) {
        c.is_of_user = getpeername (fd, (struct sockaddr *)&theirs, &their_len) == 0 &&
                       owner_of_tcp (&ours, &theirs) == (int64_t)geteuid ();
        return c;
    }
    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) < 0 || peer.uid != geteuid ())
        return c;
    c.is_of_user = true;
    if (peer.pid > 0 && process_start_text (peer.pid, c.start))
        c.pid = peer.pid;
    return c;
}

/* --- the token --- */

char *
callers_token (const char *path, struct mur_error **err)
{
    unsigned char raw[TOKEN_BYTES / 2];
    char hex[TOKEN_BYTES + 1];
    struct stat st;
    _cleanup_close_ int fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd >= 0 && fstat (fd, &st) == 0 && st.st_uid == geteuid () && ! (st.st_mode & 077) &&
        fd_read_all (fd, TOKEN_BYTES, &text) && text.len == TOKEN_BYTES)
        return x_strndup (text.data, text.len);
    random_bytes (raw, sizeof raw);
    hex_encode (raw, sizeof raw, hex);
    (void)unlink (path);
    _cleanup_close_ int made = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0 || ! fd_write_all (made, hex, TOKEN_BYTES))
        return mur_fail_errno (err, E_IO_003, "cannot write %s", path), NULL;
    return x_strdup (hex);
}
