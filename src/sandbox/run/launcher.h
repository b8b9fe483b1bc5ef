/* SPDX-License-Identifier: Apache-2.0
 *
 * The launcher: one thread that starts the commands of a session which has no process namespace.
 *
 * What a thread is restricted to by Landlock its children inherit, so commands that are all started
 * by one thread have a domain in common: they signal each other and meet at abstract sockets, and
 * reach nobody else. No other thread of the runtime is in it. This one is, and whatever signals a
 * thread signals its process: its number must be kept from commands (syscall_filter_guard).
 */
#pragma once

#include "sandbox/run/spawn.h"

struct launcher;

/* From LANDLOCK_SCOPE_ABI on. <walls_sockets>: abstract sockets of others are out of reach, too.
 * NULL with E-IO-003. */
struct launcher *launcher_new (bool walls_sockets, struct mur_error **err);
/* Its thread's. */
pid_t launcher_tid (const struct launcher *l);
/* sandbox_spawn, within the domain; one at a time. */
bool launcher_spawn (struct launcher *l, const struct spawn_request *request, struct spawned *out,
                     struct mur_error **err);
/* Nobody may be in launcher_spawn. */
void launcher_free (struct launcher *l);
DEFINE_CLEANUP (struct launcher, launcher_free)
