/* SPDX-License-Identifier: Apache-2.0
 *
 * A child that begins with a copy of its parent's work folder (spec/spawn.md A6).
 *
 * Always true: both sides are walked by held descriptors and no link is followed on either; nothing
 * but regular files, directories and links is made; no set-id bit is.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"

#include <stdint.h>

#define SNAPSHOT_SKIPPED_SHOWN 20

struct snapshot {
    const char *source_path; /* absolute and canonical: the parent's work folder */
    const char *target_path; /* absolute: the child's folder, empty */
    int target_fd;           /* borrowed */
    uint64_t limit_bytes;    /* of file content */
    const char *capsule;     /* the child's full name, for messages */
    struct cancel *cancel;   /* may be NULL */
};

/* Copies; what it made of a failed one is the caller's to remove. Returns the report as compact
 * JSON (owned), or NULL: E-RUN-013 (the ceiling, named with its key and the child), E-IO-003. */
char *snapshot_take (const struct snapshot *what, struct mur_error **err);
