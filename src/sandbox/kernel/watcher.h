/* SPDX-License-Identifier: Apache-2.0
 *
 * The watcher: a process that outlives the runtime by a moment and clears its control group,
 * whatever ended the runtime, SIGKILL included (spec/containment.md 14.5).
 *
 * It holds the read end of a pipe whose only write end is the runtime's, and the group's control
 * files; nothing else.
 */
#pragma once

#include "base/error.h"
#include "sandbox/kernel/cgroup.h"

#include <sys/types.h>

struct group_watcher;

/* Forks it. NULL with E-IO-003. */
struct group_watcher *group_watcher_new (const struct cgroup_scope *scope, struct mur_error **err);
pid_t group_watcher_pid (const struct group_watcher *w);
/* Tells it that the end is an orderly one, and reaps it. */
void group_watcher_free (struct group_watcher *w);
DEFINE_CLEANUP (struct group_watcher, group_watcher_free)
