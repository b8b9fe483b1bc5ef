/* SPDX-License-Identifier: Apache-2.0 */
#include "home/supervisor.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *
socket_path (void)
{
    const char *path = getenv ("NOTIFY_SOCKET");
    size_t len = path ? strlen (path) : 0;
    bool is_one =
        len >= 2 && len < sizeof ((struct sockaddr_un *)0)->sun_path && strchr ("/@", path[0]);
    return is_one ? path : NULL;
}

bool
supervisor_is_there (void)
{
    return socket_path () != NULL;
}

void
supervisor_tell (const char *state, const char *fmt, ...)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const char *path = socket_path ();
    if (! path)
        return;
    size_t len = strlen (path);
    memcpy (to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* the kernel's own space of names */
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    text[strcspn (text, "\n")] = '\0'; /* a second line would be another variable of the service */
    _cleanup_free_ char *told =
        x_asprintf ("%s%sSTATUS=%s", state ? state : "", state ? "\n" : "", text);
    _cleanup_close_ int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof (struct sockaddr_un, sun_path) + len);
    if (fd >= 0)
        (void)! sendto (fd, told, strlen (told), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
}
