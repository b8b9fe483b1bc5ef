/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sessions by address, for the commands that act on one (spec/cli.md 1, spec/door.md 16.2).
 *
 * Resolving scans ~/.murmur/running, removes what is provably gone and never anything else.
 */
#pragma once

#include "home/running.h"

/* Names one session of <scan>, which is filled here and freed by the caller. <address> NULL: the
 * newest. NULL with E-RUN-022 (nothing running, no match, several, too short, no address, or the
 * record just removed and why) or E-RUN-028. */
const struct running_entry *
running_session (const char *address, struct running_scan *scan, struct mur_error **err);
/* Fails with E-RUN-023: it runs, and its door does not answer. */
bool running_session_deaf (const struct running_record *r, struct mur_error **err);
