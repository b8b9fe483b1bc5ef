/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded reading and deterministic writing of zip archives held in memory (spec/artifacts.md 3.4,
 * 4).
 *
 * The only user of minizip. Entries are inflated here, counted by what comes out and never by what
 * a header declares. Always true: an opened archive has no two entries of one name; memory used
 * beyond the archive's own bytes is a small constant an entry, plus at most ceiling + 1 bytes of
 * the one entry being read whole.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define ZIP_DEFAULT_CEILING 524288000ull

/* MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES, or the default when unset or unparsable. */
uint64_t zip_ceiling (void);

struct zip;

struct zip_entry {
    const char *name;       /* raw bytes of the central directory, NUL-terminated */
    uint64_t declared_size; /* never trusted */
    uint32_t mode;          /* of Unix, 0 when the archive has none */
    uint64_t position;      /* of its record in the central directory */
    uint64_t number;
};

/* Opens an archive held in memory; <data> is borrowed and must outlive it. <label> names it in
 * errors. Fails with E-IO-003. */
struct zip *zip_open (const void *data, size_t len, const char *label, struct mur_error **err);
void zip_close (struct zip *z);
DEFINE_CLEANUP (struct zip, zip_close)

size_t zip_count (const struct zip *z);
/* Entries in archive order. Borrowed. */
const struct zip_entry *zip_at (const struct zip *z, size_t i);
/* By exact name, or NULL. */
const struct zip_entry *zip_find (const struct zip *z, const char *name);

/* Inflates one entry to the end of <out>. Fails with E-IO-003: over the ceiling ("decompression
 * ceiling"), past its declared size, wrong checksum, encrypted, or a method other than stored and
 * deflated. *is_over_ceiling (may be NULL) tells which. */
bool zip_read (struct zip *z, const struct zip_entry *e, uint64_t ceiling, struct buf *out,
               bool *is_over_ceiling, struct mur_error **err);

/* The same, handing each piece to <sink> as it comes: an entry of any size in little memory. What
 * the sink was given counts for nothing when this fails. */
typedef void zip_sink_fn (void *ctx, const void *data, size_t len);
bool zip_stream (struct zip *z, const struct zip_entry *e, uint64_t ceiling, zip_sink_fn *sink,
                 void *ctx, bool *is_over_ceiling, struct mur_error **err);

/* True when the name is one path component: no '/' or '\' anywhere, not ".." or ".". */
bool zip_name_is_root (const char *name);

struct zip_source {
    const char *name;
    const void *data;
    size_t len;
};

/* Writes an archive: entries in the given order, deflated, dated 1980-01-01, mode 0644. Same input,
 * same bytes. */
bool
zip_write (const struct zip_source *entries, size_t count, struct buf *out, struct mur_error **err);
