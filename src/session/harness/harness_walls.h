/* SPDX-License-Identifier: Apache-2.0
 *
 * A harness inside the session's walls: which files it is made of, its home, the ports of ours it
 * reaches (inference.containment).
 *
 * Always true: what it may read beside the work folder is its own package, its interpreter and its
 * private home; what it may execute beside that is capabilities.shell.allow; the only hosts are the
 * session's network.allow, its provider through the gateway, and the tool bridge.
 */
#pragma once

#include "base/error.h"

struct harness;
struct session;

/* Before the confinement is made: admits the harness to it. Nothing for one that is outside.
 * E-RUN-010, E-IO-003. */
bool harness_walls_enter (struct session *s, struct mur_error **err);
/* True when it runs inside. */
bool harness_is_confined (const struct session *s);
/* Its private home: kept with the capsule's conversations, else the session's. Borrowed. */
const char *harness_home (const struct session *s);
