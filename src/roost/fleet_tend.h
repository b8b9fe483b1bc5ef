/* SPDX-License-Identifier: Apache-2.0
 *
 * What is due: Jobs that are to go, that waited too long, that started and said nothing; sessions
 * an earlier referee registered.
 */
#pragma once

/* The thread of a struct fleet, until its cancel. */
void *fleet_tend (void *fleet);
