/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cluster says of the Jobs and their pods, as it changes.
 */
#pragma once

/* Threads of a struct fleet, until its cancel. */
void *fleet_watch_jobs (void *fleet);
void *fleet_watch_pods (void *fleet);
