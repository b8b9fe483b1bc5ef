/* SPDX-License-Identifier: Apache-2.0
 *
 * Formations whose members are Jobs: the referee is their launcher (spec/spawn.md B6, C4).
 *
 * The Job of an entry brings the roster; once its pod has asked for its seat, each peer gets a Job,
 * owned by that pod. What is remembered is on the Jobs.
 *
 * Always true: no peer is started twice; a member's tokens are in answers to its own pod alone.
 */
#pragma once

#include "base/json.h"
#include "roost/verdict.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet;
struct fleet_team;
struct referee;

/* Of the Job of an entry; NULL: it is none. */
struct fleet_team *fleet_team_new (const json_t *job);
/* "<formation>/<member>" of a peer's Job, which its grant vouches for. Owned; NULL: no peer. */
char *fleet_team_place (const json_t *job);

/* Admits one formation whose entry has come, and starts its peers. False: none is waiting. Of the
 * thread that tends alone, without the lock. */
bool fleet_team_launch (struct fleet *f);

/* What a member's pod is told: "state" (starting, ready, member, over, failed with "code" and
 * "reason"), "news", and of a member "channel" (the first line of C5), "addresses" and
 * "deadline_ms"; an entry also "peers". Answers when there is news beyond <seen>, or the time is
 * up. */
struct verdict fleet_team_answer (struct referee *r, const char *job, const char *pod_uid,
                                  const char *pod, uint64_t wait_s, uint64_t seen);
