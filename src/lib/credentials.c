/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/credentials.h"

#include "base/fdio.h"
#include "base/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME_LIMIT 256

/* The name, and the pipe that takes the value. */
static ssize_t
take_question (int fd, char name[NAME_LIMIT], int *answer_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE (sizeof (int))];
    } control = { 0 };
    struct iovec bytes = { name, NAME_LIMIT - 1 };
    struct msghdr message = { .msg_iov = &bytes,
                              .msg_iovlen = 1,
                              .msg_control = control.room,
                              .msg_controllen = sizeof control.room };
    ssize_t len;
    while ((len = recvmsg (fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *c = len > 0 ? CMSG_FIRSTHDR (&message) : NULL;
    *answer_fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy (answer_fd, CMSG_DATA (c), sizeof (int));
    if (len > 0)
        name[len] = '\0';
    return len;
}

bool
credentials_answer (int fd, mur_credential_fn *fn, void *ctx)
{
    char name[NAME_LIMIT];
    int answer_fd;
    if (take_question (fd, name, &answer_fd) <= 0)
        return false;
    char *value = answer_fd >= 0 ? fn (ctx, name) : NULL;
    if (value) {
        /* Its reader waits; a pipe takes a key whole. */
        (void)fd_write_all (answer_fd, value, strlen (value));
        secret_wipe (value, strlen (value));
        free (value);
    }
    if (answer_fd >= 0)
        close (answer_fd);
    return true;
}
