/* SPDX-License-Identifier: Apache-2.0
 *
 * Where payloads lie inside a store: names of directories and files, shared by the halves of the
 * store. Internal to artifact/.
 */
#pragma once

#include "artifact/store/store.h"
#include "artifact/store/store_meta.h"

/* "<root>/<scope>/<bare>/<version>". Owned. */
char *store_version_dir (const struct store *s, const char *name, const char *version);
/* "<bare>-<version>[-<platform>]". Owned. */
char *store_stem (const char *name, const char *version, const char *platform);
/* "<root>/<scope>/<bare>/<version>/<stem>.mur.zip": what a message shows. */
char *store_archive_path (const char *dir, const char *stem);
/* Builds the recorded sidecar of a package that was opened if it can be; never fails (contracts are
 * best effort). */
void store_meta_of_package (struct package *p, const char *name, const char *version,
                            const char *platform, struct store_meta *out);
/* The pretty JSON text of a sidecar. Owned. */
char *store_meta_text (const struct store_meta *m);
