/* SPDX-License-Identifier: Apache-2.0
 *
 * A manifest's text without its literal keys, for copies that others read.
 */
#pragma once

#include "base/buf.h"
#include "manifest/capsule/capsule.h"

/* The bytes of the manifest with every literal gateway.api_key replaced by ***, for the copy in the
 * runtime directory. The text must be the one the manifest was read from. */
void capsule_manifest_mask (const struct capsule_manifest *m, const char *text, size_t len,
                            struct buf *out);
