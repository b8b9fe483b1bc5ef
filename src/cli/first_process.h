/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that is the first process of its container: whoever loses its parent becomes its child,
 * and no signal ends it that it has no handler for.
 *
 * Always true: the program itself runs as a child of this one, which reaps what nobody waits for,
 * hands signals on and ends as the program ended; its end is the end of the container.
 */
#pragma once

/* Before there are threads. Returns in the program; nothing happens unless this is process 1. */
void first_process_begin (void);
