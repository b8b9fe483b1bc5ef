/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/lifeline.h"

#include "base/diag.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *variable, *name;
    enum diag_code code;
} lines[] = {
    [LIFELINE_SPAWNER] = { "MURMUR_SPAWNER_LIFELINE", "spawner lifeline", E_RUN_020 },
    [LIFELINE_FORMATION] = { "MURMUR_FORMATION_LIFELINE", "formation lifeline", E_RUN_046 },
};

/* One environment, one lifeline of each kind: a process state by nature. Set before there is a
 * second thread. */
static int taken[] = { -1, -1 };

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
check (enum lifeline which, int fd, struct mur_error **err)
{
    const char *variable = lines[which].variable;
    enum diag_code code = lines[which].code;
    struct stat st;
    if (fd <= STDERR_FILENO)
        return mur_fail (err, code, "%s names descriptor %d, a standard stream", variable, fd);
    if (fstat (fd, &st) < 0)
        return mur_fail (err, code, "%s names descriptor %d, which is not open", variable, fd);
    if (! S_ISFIFO (st.st_mode))
        return mur_fail (err, code, "%s names descriptor %d, which is %s, not a pipe", variable, fd,
                         kind_of (st.st_mode));
    if ((fcntl (fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
        return mur_fail (err, code, "%s names descriptor %d, which is open for writing", variable,
                         fd);
    return fd_set_cloexec (fd, true) ||
           mur_fail_errno (err, code, "%s: descriptor %d", variable, fd);
}

bool
lifeline_take (enum lifeline which, struct mur_error **err)
{
    const char *variable = lines[which].variable, *text = getenv (variable);
    if (! text || ! text[strspn (text, " \t\r\n")])
        return true;
    if (taken[which] >= 0)
        return mur_fail (err, lines[which].code, "%s was read before in this process", variable);
    errno = 0;
    unsigned long fd = strtoul (text, NULL, 10);
    if (text[strspn (text, "0123456789")] || errno || fd > INT_MAX)
        return mur_fail (err, lines[which].code, "%s is not the decimal number of a descriptor",
                         variable);
    if (! check (which, (int)fd, err))
        return false;
    taken[which] = (int)fd;
    return true;
}

void
lifeline_give (enum lifeline which, int fd)
{
    taken[which] = fd;
}

int
lifeline_fd (enum lifeline which)
{
    return taken[which];
}

bool
lifeline_has_ended (enum lifeline which)
{
    char ignored[512];
    ssize_t n = read (taken[which], ignored, sizeof ignored);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
        return false;
    if (n < 0)
        diag_stderr_line ("[capsule-runtime] cannot read the %s: %s", lines[which].name,
                          strerror (errno));
    return true;
}
