/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving memory back when a process begins to wait.
 *
 * Always true: nothing a program can see changes; what is needed again comes back from the page
 * cache with the next touch.
 */
#pragma once

/* Returns free heap to the system and lets go of the pages of program and libraries that were never
 * written: code and constants most of which only a launch or a task needs. Thread-safe. */
void memory_release_idle (void);
