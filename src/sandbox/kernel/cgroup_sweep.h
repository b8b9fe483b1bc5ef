/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups of sessions that are gone.
 *
 * A session's own watcher removes its groups however the session ends. One that was killed in the
 * moment before its watcher began, or together with it, leaves them; whoever comes next takes them
 * away. Always true: only groups of this user are touched, only those whose name tells of a process
 * that does not exist any more, and of these only what no process holds: a maker locks its group's
 * folder, and makes it again when it was swept before that.
 */
#pragma once

/* Ends what still runs in such groups and removes them. Failures are silent: a later call tries
 * again. */
void cgroup_sweep (void);
/* The same for the groups directly in this folder. */
void cgroup_sweep_folder (const char *base);
