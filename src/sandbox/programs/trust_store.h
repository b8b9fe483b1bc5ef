/* SPDX-License-Identifier: Apache-2.0
 *
 * Which certificate files a command that may use the network can read (spec/containment.md 8.2).
 */
#pragma once

#include "base/buf.h"

/* Certificate files and directories of this host; nothing below <writable_roots> (NULL-terminated).
 */
void trust_store_paths (const char *const *writable_roots, struct strv *out);
