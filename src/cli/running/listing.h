/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs on this host: the sessions whose process is not gone, newest first, and whether each
 * door answers.
 */
#pragma once

#include "base/cleanup.h"
#include "home/running.h"

struct listing {
    struct running_scan scan;
    const struct running_record **records;
    bool *is_live;
    size_t len;
};

/* Scans and asks every door. <creates>: the folder of running records is made when it is missing.
 */
bool listing_read (struct listing *l, bool creates, struct mur_error **err);
void listing_free (struct listing *l);
/* "00:01:02", "3d 04:05:06" since an RFC 3339 time. */
void listing_uptime (const char *started_at, char out[32]);
/* The work root a running session was launched with: where its records are looked for. Owned. */
char *running_work_root (const struct running_record *r);
