/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/start.h"

#include "base/share.h"

#include <fcntl.h>

void
pipe_close (struct pipe *p)
{
    cleanup_closep (&p->read_end);
    cleanup_closep (&p->write_end);
    p->read_end = p->write_end = -1;
}

bool
pipe_open (struct pipe *p, const char *what, struct mur_error **err)
{
    int fds[2];
    if (pipe2 (fds, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create %s", what);
    for (size_t i = 0; i < ARRAY_LEN (fds); i++) {
        if (fds[i] > STDERR_FILENO)
            continue;
        int low = fds[i];
        fds[i] = fcntl (low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close (low);
    }
    *p = (struct pipe){ fds[0], fds[1] };
    return (fds[0] >= 0 && fds[1] >= 0) || mur_fail_errno (err, E_IO_003, "cannot create %s", what);
}

bool
program_push (struct strv *argv, struct mur_error **err)
{
    const char *named = getenv ("MURMUR_MUR_BINARY");
    if (named && *named) {
        strv_push (argv, named);
        return true;
    }
    _cleanup_free_ char *path = share_program ();
    if (! path)
        return mur_fail_errno (err, E_IO_003, "cannot name the running program");
    strv_push (argv, path);
    return true;
}
