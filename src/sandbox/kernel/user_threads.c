/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/user_threads.h"

#include "base/fdio.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

uint64_t
user_threads_count (void)
{
    uint64_t count = 0;
    uid_t uid = getuid ();
    _cleanup_closedir_ DIR *proc = opendir ("/proc");
    for (struct dirent *e; proc && (e = readdir (proc));) {
        char path[64], line[512];
        struct stat st;
        if (! isdigit ((unsigned char)e->d_name[0]) || strlen (e->d_name) > 10)
            continue;
        snprintf (path, sizeof path, "%.10s/stat", e->d_name);
        _cleanup_close_ int fd = openat (dirfd (proc), path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat (fd, &st) < 0 || st.st_uid != uid)
            continue;
        ssize_t n = read (fd, line, sizeof line - 1);
        line[n > 0 ? n : 0] = '\0';
        /* Field 20, counted after the last ')': the command name may hold anything. */
        char *at = strrchr (line, ')');
        for (int field = 2; at && field < 20; field++)
            at = strchr (at + 1, ' ');
        count += at ? strtoull (at, NULL, 10) : 1;
    }
    return count;
}
