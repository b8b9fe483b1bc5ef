/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening what others ask for below a held directory, and saying precisely why not (spec/door.md
 * 12).
 *
 * Unlike fs/root.h nothing here is a fault of the session: the path came from a client, so nothing
 * is latched and no diagnostic is made. Always true: what is opened in the end is walked from the
 * held directory with no link followed; links are only ever resolved to learn whether their target
 * lies beneath it.
 */
#pragma once

#include <stdbool.h>

enum fs_beneath {
    FS_BENEATH_OPENED,
    FS_BENEATH_ABSENT,  /* nothing there, or a component on the way is no directory */
    FS_BENEATH_OUTSIDE, /* it resolves to a place that is not beneath the directory */
    FS_BENEATH_LINK,    /* a link where none is followed, or one that came in between */
    FS_BENEATH_SPECIAL, /* a socket: it cannot be opened */
    FS_BENEATH_FAILED,  /* anything else */
};

/* Opens <path>, of plain components only, below the directory <base> with <flags>; never blocks on
 * a FIFO. <follows>: a link whose target lies beneath <base> is as good as the target itself.
 * *fd and *resolved (the path without links; may be NULL) are owned when opened. */
enum fs_beneath
fs_open_beneath (int base, const char *path, bool follows, int flags, int *fd, char **resolved);
