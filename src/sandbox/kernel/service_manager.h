/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's systemd: where it owns the control groups, it is the one to ask for a group of one's
 * own (spec/containment.md 14.2).
 *
 * Best effort: whatever goes wrong, the process stays where it is.
 */
#pragma once

#include <stdbool.h>

/* Whether this host runs systemd and the user has a bus. Costs two or three system calls. */
bool service_manager_is_there (void);
/* Moves this process into a transient scope "murmur-<pid>-<n>.scope" with its controllers
 * delegated. Waits up to two seconds until it is there. True when it is. */
bool service_manager_give_scope (void);
