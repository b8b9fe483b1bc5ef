/* SPDX-License-Identifier: Apache-2.0
 *
 * What the servers of tools of a capsule may reach, for the grants report.
 */
#pragma once

#include "policy/policy.h"

/* A line for each: its network, its folder, what it is told, how it is held to what was reviewed.
 */
void report_servers (const struct policy *p, struct strv *lines);
