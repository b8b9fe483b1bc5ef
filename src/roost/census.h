/* SPDX-License-Identifier: Apache-2.0
 *
 * The census: live capsules an earlier daemon approved, read once from ~/.murmur/running
 * (spec/spawn.md B2).
 *
 * Nothing there is written, renamed or removed. A held record only ever goes away: each count looks
 * again and forgets the gone for good.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct census;

struct census_facts {
    size_t counted, stale, unreadable; /* read = their sum */
    double read_ms;
};

/* Lists <running_dir> (missing: empty). E-RUN-028 when it cannot be listed. */
struct census *
census_take (const char *running_dir, struct census_facts *facts, struct mur_error **err);
void census_free (struct census *c);
DEFINE_CLEANUP (struct census, census_free)

/* Live ones whose session id is not one <is_known> answers for. */
uint64_t
census_count (struct census *c, bool (*is_known) (void *ctx, const char *session_id), void *ctx);

/* What a session's running record says: of a process that runs, of one that is gone (killed before
 * it could deregister), or nothing. */
enum census_record {
    RECORD_NONE,
    RECORD_LIVE,
    RECORD_GONE,
};
enum census_record census_look (const struct census *c, const char *session_id);
