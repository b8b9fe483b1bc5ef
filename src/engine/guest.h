/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests: linking a component once for every set of interfaces, instances of it, calls into them
 * and calls out of them.
 */
#pragma once

#include "engine/engine.h"

/* How an instantiation or call ended. Everything but GUEST_OK leaves the guest unusable. */
enum guest_ending {
    GUEST_OK,
    GUEST_MISSING_IMPORT, /* E-RUN-002, naming the import */
    GUEST_MISSING_EXPORT, /* E-RUN-001 */
    GUEST_TRAPPED,        /* E-RUN-001 */
    GUEST_DEADLINE,       /* E-RUN-001 */
    GUEST_LIMIT,          /* E-RUN-001; the message names the key and both numbers */
    GUEST_CANCELLED,      /* no code of its own; err is E-RUN-001 "cancelled" */
};

struct guest;

/* Instantiates. <cancel> may be NULL. On failure returns NULL with *ending and *err set; the
 * message holds the bare fact
 * ("linear memory growth to N bytes exceeds capabilities.limits.memory_bytes (M)"), the caller adds
 * whose guest it was. */
struct guest *guest_new (const struct guest_spec *spec, struct cancel *cancel,
                         enum guest_ending *ending, struct mur_error **err);
void guest_free (struct guest *g);
DEFINE_CLEANUP (struct guest, guest_free)

/* Calls <interface>#<function>. The result is built in <arena>; result may be NULL for a function
 * that returns nothing. Returns within milliseconds of <cancel> being raised, whatever the guest is
 * doing. */
enum guest_ending guest_call (struct guest *g, const char *interface, const char *function,
                              const struct value *args, size_t arg_count, struct arena *arena,
                              struct value *result, struct cancel *cancel, struct mur_error **err);

/* The last a guest wrote on its stderr since it was asked, "" when nothing, in <arena>: what a
 * language's run time says before it traps. At most 2 000 bytes, UTF-8. */
const char *guest_last_words (struct guest *g, struct arena *arena);

/* The cancel of the call now running on this thread, for host functions that wait; NULL outside a
 * call. */
struct cancel *guest_current_cancel (void);
