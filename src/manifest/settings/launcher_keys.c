/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/launcher_keys.h"

#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_LIMIT ((size_t)64 << 10)
#define ANSWER_MS   30000

static const char variable[] = "MURMUR_CREDENTIALS_FD";

/* -1: the variable is not set. */
static int
socket_fd (void)
{
    const char *text = getenv (variable);
    return text && *text ? atoi (text) : -1;
}

bool
launcher_keys_check (struct mur_error **err)
{
    int fd = socket_fd ();
    struct stat st;
    if (fd < 0)
        return true;
    if (fd <= STDERR_FILENO || fstat (fd, &st) < 0 || ! S_ISSOCK (st.st_mode))
        return mur_fail (err, E_IO_003, "%s=%s names no open socket", variable, getenv (variable));
    return fd_set_cloexec (fd, true) || mur_fail_errno (err, E_IO_003, "%s", variable);
}

static bool
send_question (int fd, const char *name, int answer_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE (sizeof (int))];
    } control = { 0 };
    struct iovec bytes = { (void *)(uintptr_t)name, strlen (name) };
    struct msghdr message = { .msg_iov = &bytes,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof control.room };
    struct cmsghdr *c = CMSG_FIRSTHDR (&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN (sizeof (int));
    memcpy (CMSG_DATA (c), &answer_fd, sizeof answer_fd);
    ssize_t sent;
    while ((sent = sendmsg (fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent >= 0;
}

struct secret *
launcher_keys_ask (const char *name)
{
    int fd = socket_fd ();
    int ends[2];
    if (fd < 0 || pipe2 (ends, O_CLOEXEC) < 0)
        return NULL;
    _cleanup_close_ int answer = ends[0];
    bool is_sent = send_question (fd, name, ends[1]);
    close (ends[1]);
    struct buf value = { 0 };
    struct secret *key = NULL;
    if (is_sent && fd_wait (answer, POLLIN, ANSWER_MS) == 1 &&
        fd_read_all (answer, VALUE_LIMIT, &value) && value.len)
        key = secret_new (value.data, value.len);
    if (value.len)
        secret_wipe (value.data, value.len);
    buf_free (&value);
    return key;
}
