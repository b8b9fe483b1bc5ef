/* SPDX-License-Identifier: Apache-2.0
 *
 * The files a package brings along for a program that is no component: unpacked once for each
 * package, below ~/.murmur/mcp/<digest>, and read from there.
 *
 * Always true: a tree that is handed out is the package's: it is made beside its place and renamed,
 * its files are read-only, and <digest>.stamp beside it says how it was left; one that was touched
 * since is unpacked anew. Nothing of it lies outside, and nothing in it is a link.
 */
#pragma once

#include "artifact/package/package.h"

/* The folder of the tree, unpacked from the archive at <path>, whose digest must be <sha256>, when
 * it is not there yet: everything below <prefix>. Owned; NULL with E-REG-002, E-IO-003. */
char *
package_tree (const char *path, const char *sha256, const char *prefix, struct mur_error **err);
/* The same of an opened package. */
char *package_tree_of (struct package *p, const char *prefix, struct mur_error **err);
