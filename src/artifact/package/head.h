/* SPDX-License-Identifier: Apache-2.0
 *
 * The few entries of a large package that a launch reads, kept below ~/.murmur/mcp/<digest>.head
 * when its bytes were verified, with the stamp of its file: an archive that was not touched since
 * is neither read nor hashed again.
 *
 * Always true: one whose device, inode, length, owner, mode or times differ is read and hashed
 * whole; nothing is kept of a file that was changed a moment ago, within the clock's tick.
 */
#pragma once

#include "artifact/package/package.h"

/* The package at <path>, said to have the digest <sha256>: from what was kept, only murmur.yaml,
 * murmur-build.json and <entry>, with that digest; else the whole, with the digest it has, which
 * the caller compares. E-IO-001, E-IO-002, E-IO-003. */
struct package *
package_head (const char *path, const char *sha256, const char *entry, struct mur_error **err);
