/* SPDX-License-Identifier: Apache-2.0
 *
 * Which whole disk a path is kept on, for limits on its I/O (spec/containment.md 14.2).
 */
#pragma once

/* Looks at the nearest existing ancestor of an absolute path. A file system without a device of its
 * own (overlay, btrfs) counts as the block device it was mounted from, a partition as its disk.
 * Returns NULL with both numbers set, or why there is none (owned). */
char *block_device_of (const char *path, unsigned *major_number, unsigned *minor_number);
/* The same judgement for a path on a device with major number 0: the mount that covers it among the
 * lines of a mountinfo text, which is changed. Its source when that is a path, else NULL; *type is
 * what is mounted there ("" when nothing is). Both point into the text. */
const char *covering_source (char *mountinfo, const char *path, const char **type);
