/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a session reads and writes: its folders, each behind one root (fs/root.h).
 *
 * Filled by staging, read-only afterwards.
 */
#pragma once

#include "fs/root.h"
#include "home/paths.h"
#include "home/session_dirs.h"

struct places {
    char *work_path;
    struct fs_root *work, *runtime, *records;
    struct home_session dirs;
    bool has_dirs;
    struct fs_latch *latch;
    int bootstrap_fd;        /* logs/bootstrap.log, -1 */
    struct shipper *shipper; /* of the records; NULL: they stay here */
};
