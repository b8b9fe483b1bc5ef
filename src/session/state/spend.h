/* SPDX-License-Identifier: Apache-2.0
 *
 * The spend meter: what may still be spent, what is reserved by the call in flight, what was used
 * (docs/spec/session.md 13.1), and the ledger all sessions of this machine share (13.2).
 *
 * Always true: one admission is open at a time per meter user; a session refusal latches, a
 * machine refusal is asked again; a reservation is given back only after the ledger line was
 * appended.
 *
 * The ledger is one file a UTC day, one line a settled call, appended with one write and no lock;
 * each process adds up the whole lines it has not read yet.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum spend_limit {
    SPEND_NO_LIMIT,
    SPEND_SESSION,
    SPEND_MACHINE,
};

/* "session", "machine". */
const char *spend_limit_name (enum spend_limit limit);

struct spend_refusal {
    enum spend_limit limit;
    uint64_t ceiling;
    uint64_t used;
    uint64_t requested;
};

struct spend_totals {
    uint64_t used;            /* charged tokens of this session */
    uint64_t ceiling;         /* 0: none */
    uint64_t machine_used;    /* today, all sessions */
    uint64_t machine_ceiling; /* 0: none */
};

struct spend_meter;

/* Ceilings of 0 are none. With a machine ceiling the ledger is opened: E-RUN-026 when it cannot be
 * used. */
struct spend_meter *spend_meter_new (const char *session_id, uint64_t session_ceiling,
                                     uint64_t machine_ceiling, struct mur_error **err);
void spend_meter_free (struct spend_meter *m);
DEFINE_CLEANUP (struct spend_meter, spend_meter_free)

/* Asks for <input> + <output> tokens before a call. False with *refusal when a ceiling stands in
 * the way. */
bool
spend_admit (struct spend_meter *m, uint64_t input, uint64_t output, struct spend_refusal *refusal);
/* Ends the open admission, charging these tokens; release charges nothing. */
void spend_settle (struct spend_meter *m, uint64_t input, uint64_t output);
void spend_release (struct spend_meter *m);
/* Charges what was spent without asking first. False with *refusal (nothing requested) once a
 * ceiling is reached. */
bool spend_charge (struct spend_meter *m, uint64_t input, uint64_t output,
                   struct spend_refusal *refusal);
/* True while an admission is open. Thread-safe. */
bool spend_is_open (struct spend_meter *m);
void spend_totals (struct spend_meter *m, struct spend_totals *out);
