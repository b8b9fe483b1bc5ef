/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups within a session's scope, for processes that end together before the rest of it does.
 *
 * Always true: they live in the version 2 hierarchy alone. Limits are the scope's, whatever version
 * has them; a nested group adds the kill.
 */
#pragma once

struct cgroup_nest;

/* Within the scope whose version 2 directory is <scope_fd>, -1 where it has none. NULL there, and
 * where the scope holds as many as it may. */
struct cgroup_nest *cgroup_nest_new (int scope_fd);
/* The directory to clone into instead of the scope's. Borrowed. */
int cgroup_nest_clone_fd (const struct cgroup_nest *n);
/* Kills what is in it, waits up to two seconds, removes it. Before the scope goes. */
void cgroup_nest_free (struct cgroup_nest *n);
/* Removes the directories of those that were left; they must be empty. */
void cgroup_nests_remove (int scope_fd);
