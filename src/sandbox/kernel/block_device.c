/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/block_device.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/kernel/mountinfo.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MOUNTINFO_MAX ((size_t)16 << 20)

const char *
covering_source (char *mountinfo, const char *path, const char **type)
{
    struct mountinfo_line line;
    const char *source = NULL;
    size_t longest = 0;
    *type = "";
    /* Of mounts at one point the last covers the others. */
    while (mountinfo_next (&mountinfo, &line)) {
        size_t len = strlen (line.mount_point);
        if (len < longest || ! fs_path_is_within (path, line.mount_point))
            continue;
        longest = len;
        *type = line.type;
        source = line.source[0] == '/' ? line.source : NULL;
    }
    return source;
}

/* The disk of a partition, else the device itself. */
static dev_t
whole_disk (dev_t device)
{
    unsigned disk_major, disk_minor;
    char path[96];
    snprintf (path, sizeof path, "/sys/dev/block/%u:%u/partition", major (device), minor (device));
    if (access (path, F_OK) != 0)
        return device;
    snprintf (path, sizeof path, "/sys/dev/block/%u:%u/../dev", major (device), minor (device));
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, 64, &text, NULL) ||
        sscanf (text.data, "%u:%u", &disk_major, &disk_minor) != 2)
        return device;
    return makedev (disk_major, disk_minor);
}

/* The device of the nearest ancestor that exists, which stays in <path>; 0: none can be asked. */
static dev_t
device_of_nearest (char *path)
{
    struct stat st;
    while (stat (path, &st) != 0) {
        char *slash = strrchr (path, '/');
        if (! slash || path[1] == '\0')
            return 0;
        slash[slash == path ? 1 : 0] = '\0';
    }
    return st.st_dev;
}

char *
block_device_of (const char *path, unsigned *major_number, unsigned *minor_number)
{
    _cleanup_free_ char *nearest = x_strdup (path ? path : "/");
    dev_t device = device_of_nearest (nearest);
    if (major (device) == 0) {
        struct stat st;
        const char *type = "";
        _cleanup_buf_ struct buf mounts = { 0 };
        const char *source = fs_read_path ("/proc/self/mountinfo", MOUNTINFO_MAX, &mounts, NULL)
                                 ? covering_source (mounts.data, nearest, &type)
                                 : NULL;
        if (! source || stat (source, &st) != 0 || ! S_ISBLK (st.st_mode))
            return x_asprintf ("%s lies on %s, which is no block device", nearest,
                               *type ? type : "a file system nobody names");
        device = st.st_rdev;
    }
    device = whole_disk (device);
    *major_number = major (device);
    *minor_number = minor (device);
    return NULL;
}
