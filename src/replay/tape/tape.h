/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing replay.jsonl, what a session was given from outside beyond what its trace holds
 * (docs/spec/records.md 14): one whole line a write(2), bodies beside the trace's own.
 *
 * Always true: what a line names is stored before the line; a tape that cannot be written any more
 * says so once and is silent from then on, so that it never ends a session. Thread-safe.
 */
#pragma once

#include "base/digest.h"
#include "fs/root.h"

#include <jansson.h>

#define TAPE_FILE       "replay.jsonl"
#define TAPE_FORMAT     1
#define TAPE_SEED_BYTES 32

struct tape;

/* Opens replay.jsonl below the records directory, creating it. <seed>: of the session's random
 * numbers. E-RUN-050, E-IO-003. */
struct tape *tape_new (struct fs_root *records, const unsigned char seed[TAPE_SEED_BYTES],
                       struct mur_error **err);
/* Writes the line that says the tape is whole, and frees. */
void tape_close (struct tape *t);

/* The key of one guest's random numbers. */
void tape_key (const unsigned char seed[TAPE_SEED_BYTES], const char *place, unsigned char out[32]);
const unsigned char *tape_seed (const struct tape *t);

/* Appends a line of that kind; <line> is taken over. */
void tape_write (struct tape *t, const char *kind, json_t *line);
/* Stores a body once under its digest, which is left in <sha>. False: it could not be. */
bool tape_body (struct tape *t, const void *data, size_t len, char sha[SHA256_HEX_LEN + 1]);
/* The same, and <key> of <line> is its digest; small bodies lie in the line itself, under
 * <key> + "_text" when they are UTF-8. */
void tape_put (struct tape *t, json_t *line, const char *key, const void *data, size_t len);
