/* SPDX-License-Identifier: Apache-2.0 */
#include "home/roost_socket.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static char *
below_home (const char *name)
{
    const char *home = getenv ("HOME");
    return home && *home ? x_asprintf ("%s/.murmur/%s", home, name) : NULL;
}

char *
roost_socket_path (void)
{
    return below_home ("roost.sock");
}

char *
roost_token_path (void)
{
    return below_home ("roost.token");
}

int
roost_socket_reach (const char *path, char reach[ROOST_REACH_MAX])
{
    const char *slash = strrchr (path, '/');
    if (! slash || strlen (slash) > 32) {
        errno = ENAMETOOLONG;
        return -1;
    }
    _cleanup_free_ char *folder = x_strndup (path, slash == path ? 1 : (size_t)(slash - path));
    int fd = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        snprintf (reach, ROOST_REACH_MAX, "/proc/self/fd/%d%s", fd, slash);
    return fd;
}
