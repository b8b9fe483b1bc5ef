/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /register by a pod, and POST /formation by a member's: who it is, the cluster says.
 */
#pragma once

#include "roost/referee.h"
#include "roost/verdict.h"

/* <token>: the pod's projected one. Its audience, its pod, that pod's Job and the grant on it are
 * looked at; the first pod that registers a Job is the only one. */
struct verdict
fleet_register (struct referee *r, const char *token, const char *body, size_t body_len);
/* POST /formation {"wait","seen"}: its place in its formation and where the others are
 * (fleet_team_answer). The first pod of its Job that asks is the only one. */
struct verdict fleet_seat (struct referee *r, const char *token, const char *body, size_t body_len);
