/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that owns every child of a session, its pipes and its timers.
 *
 * One epoll: for each command its pidfd and its pipes, and an eventfd to be woken by. Times are
 * computed from the commands' states; there is one timer, the epoll's own timeout. Always true: a
 * leader's exit is seen before it is reaped, and its group is signalled only before that.
 */
#pragma once

/* Runs until the commands are ending and none is left; <arg> is the struct commands. NULL. */
void *command_supervise (void *arg);
