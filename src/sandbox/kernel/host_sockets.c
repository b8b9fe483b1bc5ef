/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/host_sockets.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

void
host_socket_paths (struct strv *out)
{
    char line[512];
    FILE *table = fopen ("/proc/net/unix", "re");
    while (table && fgets (line, sizeof line, table)) {
        char *path = strstr (line, " /");
        if (! path)
            continue;
        path++;
        path[strcspn (path, "\n")] = '\0';
        bool is_known = false;
        for (size_t i = 0; i < out->len && ! is_known; i++)
            is_known = str_eq (out->items[i], path);
        if (! is_known)
            strv_push (out, path);
    }
    if (table)
        fclose (table);
}
