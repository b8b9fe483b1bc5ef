/* SPDX-License-Identifier: Apache-2.0
 *
 * The one host probe of this process, and what it means for the containment decision
 * (spec/containment.md 6).
 *
 * The attempts take a few milliseconds of other processes' time, so they may be started early and
 * fetched late.
 */
#pragma once

#include "policy/containment.h"
#include "sandbox/probe.h"

/* Starts the probe on a thread of its own, once; without it the first look runs it. */
void host_probe_start (void);
/* The probe, made once. Waits for it. */
const struct host_probe *host_probe_once (void);
/* The facts the decision takes, from that probe. Strings live as long as the process. */
struct host_containment host_containment_facts (void);
