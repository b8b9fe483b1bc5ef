/* SPDX-License-Identifier: Apache-2.0
 *
 * The signals that end a session, kept away from threads that are not to take them.
 *
 * The engine starts threads of its own while it compiles, long before the session can end in good
 * order: what is made between hold and release never takes them. A signal that came meanwhile is
 * delivered by the release.
 */
#pragma once

#include <signal.h>

/* SIGTERM, SIGINT, SIGQUIT; unless ignored or handled every other one that ends a process and is no
 * fault of its own. */
sigset_t signals_of_ending (void);
void signals_hold (sigset_t *before);
void signals_release (const sigset_t *before);
