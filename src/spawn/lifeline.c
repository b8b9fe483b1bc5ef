/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking and reading the lifeline. See lifeline.h.
 */
#include "spawn/lifeline.h"

#include "base/diag.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE "MURMUR_SPAWNER_LIFELINE"

/* One environment, one lifeline: a process state by nature. Set before there is a second thread. */
static int taken = -1;

static const char *
kind_of (mode_t mode)
{
    static const struct {
        mode_t mode;
        const char *name;
    } kinds[] = {
        { S_IFREG, "a regular file" },     { S_IFDIR, "a directory" },
        { S_IFCHR, "a character device" }, { S_IFBLK, "a block device" },
        { S_IFSOCK, "a socket" },
    };
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++)
        if ((mode & S_IFMT) == kinds[i].mode)
            return kinds[i].name;
    return "no pipe";
}

static bool
check (int fd, struct mur_error **err)
{
    struct stat st;
    if (fd <= STDERR_FILENO)
        return mur_fail (err, E_RUN_020, VARIABLE " names descriptor %d, a standard stream", fd);
    if (fstat (fd, &st) < 0)
        return mur_fail (err, E_RUN_020, VARIABLE " names descriptor %d, which is not open", fd);
    if (! S_ISFIFO (st.st_mode))
        return mur_fail (err, E_RUN_020, VARIABLE " names descriptor %d, which is %s, not a pipe",
                         fd, kind_of (st.st_mode));
    if ((fcntl (fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
        return mur_fail (err, E_RUN_020, VARIABLE " names descriptor %d, which is open for writing",
                         fd);
    return fd_set_cloexec (fd, true) ||
           mur_fail_errno (err, E_RUN_020, VARIABLE ": descriptor %d", fd);
}

bool
lifeline_take (struct mur_error **err)
{
    const char *text = getenv (VARIABLE);
    if (! text || ! text[strspn (text, " \t\r\n")])
        return true;
    if (taken >= 0)
        return mur_fail (err, E_RUN_020, VARIABLE " was read before in this process");
    errno = 0;
    unsigned long fd = strtoul (text, NULL, 10);
    if (text[strspn (text, "0123456789")] || errno || fd > INT_MAX)
        return mur_fail (err, E_RUN_020, VARIABLE " is not the decimal number of a descriptor");
    if (! check ((int)fd, err))
        return false;
    taken = (int)fd;
    return true;
}

int
lifeline_fd (void)
{
    return taken;
}

bool
lifeline_has_ended (int fd)
{
    char ignored[512];
    ssize_t n = read (fd, ignored, sizeof ignored);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return false;
    if (n < 0)
        diag_stderr_line ("[capsule-runtime] cannot read the spawner lifeline: %s",
                          strerror (errno));
    return true;
}
