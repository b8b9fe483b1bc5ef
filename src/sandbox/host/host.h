/* SPDX-License-Identifier: Apache-2.0
 *
 * The one host probe of this process, and the containment decision that rests on it
 * (spec/containment.md 6).
 *
 * The attempts cost a few milliseconds in processes of their own, so a launch starts them early and
 * looks at them late. Always true: whoever asks, and whenever, gets the same probe.
 */
#pragma once

#include "policy/containment.h"
#include "sandbox/host/probe.h"

/* Starts the probe in a helper process, so that the first look need not wait for all of it. Before
 * the engine is mapped and before there are threads: the helper forks for each attempt. Nothing
 * happens when it was started or made before. */
void host_probe_start (void);
/* Ends and reaps the helper, whether it was looked at or not. Once nobody waits for this process
 * any more, and on the way out. */
void host_probe_stop (void);
/* The probe: of the helper, else made now by the first call. Thread-safe. */
const struct host_probe *host_probe_once (void);
/* The facts the decision takes, from that probe. Strings live as long as the process. */
struct host_containment host_containment_facts (void);

/* The decision of one launch, taken when first asked for. */
struct host_decision {
    enum containment_class floor;
    struct capsule_containment capsule;
    bool is_without_host; /* nothing of this launch depends on the host: no probe is made */
    bool is_taken;
    struct containment taken;
};

/* Borrowed; the same value from then on. One thread at a time. */
const struct containment *host_decide (struct host_decision *d);
void host_decision_clear (struct host_decision *d);
