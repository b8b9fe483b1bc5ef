/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody may have meant who asked for an artifact that no store has: another version, or a
 * name that is spelled nearly so.
 */
#pragma once

#include "artifact/store/store.h"

/* One hint: the versions there are of <name>, else the nearest name with its newest version; NULL
 * when nothing is near. <version> may be NULL. Owned. */
char *store_near_hint (const struct stores *stores, const char *name, const char *version);
