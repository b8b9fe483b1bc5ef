/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of a cluster for the page: each as if it ran here, its trace copied to a folder of this
 * process while it is written (docs/fleet.md).
 *
 * Always true: one thread asks the cluster and the doors; the copies go with this process.
 */
#pragma once

#include "base/error.h"
#include "home/running.h"

struct http_client;
struct ui_fleet;

/* NULL for either: the defaults of kube_access_read. Lists once. E-KUB-001, E-KUB-002, E-IO-003. */
struct ui_fleet *ui_fleet_new (const char *kubeconfig, const char *namespace,
                               struct http_client *client, struct mur_error **err);
/* Looks from now on; <wake_fd>, an event descriptor, is written to when something changed.
 * E-IO-003. */
bool ui_fleet_start (struct ui_fleet *f, int wake_fd, struct mur_error **err);
void ui_fleet_free (struct ui_fleet *f);
DEFINE_CLEANUP (struct ui_fleet, ui_fleet_free)

/* Adds those that run to <scan>: pid 0, the copy as their records. */
void ui_fleet_scan (struct ui_fleet *f, struct running_scan *scan);
/* The options a command needs to mean session <id>, none for one that is not of the cluster; a NULL
 * ends them. Borrowed. */
const char *const *ui_fleet_words (struct ui_fleet *f, const char *id);
