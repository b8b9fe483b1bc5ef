/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/open_files.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct found {
    dev_t dev;
    ino_t ino;
};

struct search {
    const dev_t *devices;
    size_t device_count;
    struct found *seen;
    size_t len, cap;
    uint64_t bytes;
};

static void
take_file (struct search *s, const struct stat *st)
{
    bool is_here = false;
    for (size_t i = 0; i < s->device_count; i++)
        is_here |= s->devices[i] == st->st_dev;
    if (! S_ISREG (st->st_mode) || st->st_nlink || ! is_here)
        return;
    for (size_t i = 0; i < s->len; i++)
        if (s->seen[i].dev == st->st_dev && s->seen[i].ino == st->st_ino)
            return;
    x_grow (s->seen, s->len, s->cap);
    s->seen[s->len++] = (struct found){ st->st_dev, st->st_ino };
    s->bytes += (uint64_t)st->st_blocks * 512;
}

static void
take_process (struct search *s, long pid)
{
    char path[48];
    snprintf (path, sizeof path, "/proc/%ld/fd", pid);
    _cleanup_closedir_ DIR *dir = opendir (path);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        struct stat st;
        if (e->d_name[0] != '.' && fstatat (dirfd (dir), e->d_name, &st, 0) == 0)
            take_file (s, &st);
    }
}

uint64_t
open_files_unlinked_bytes (const struct cgroup_scope *scope, const dev_t *devices, size_t count)
{
    struct search s = { .devices = devices, .device_count = count };
    _cleanup_free_ char *text = cgroup_scope_processes (scope);
    for (char *at = text, *end; at && *at; at = end + 1) {
        long pid = strtol (at, &end, 10);
        if (end == at)
            break;
        take_process (&s, pid);
        if (! *end)
            break;
    }
    free (s.seen);
    return s.bytes;
}
