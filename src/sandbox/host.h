/* SPDX-License-Identifier: Apache-2.0
 *
 * The one host probe of this process, and what it means for the containment decision
 * (spec/containment.md 6).
 */
#pragma once

#include "policy/containment.h"
#include "sandbox/probe.h"

/* The probe, made by the first call. */
const struct host_probe *host_probe_once (void);
/* The facts the decision takes, from that probe. Strings live as long as the process. */
struct host_containment host_containment_facts (void);
