/* SPDX-License-Identifier: Apache-2.0
 *
 * Which murmur:* interfaces each kind of guest may import: one table (spec/artifacts.md 11, "Host
 * imports offered").
 *
 * A new level, or a new interface, is a row here, an adapter file beside this one and its WIT text.
 */
#pragma once

#include "engine/engine.h"

enum guest_kind {
    GUEST_SCRIPT,         /* script capsule */
    GUEST_TOOL,           /* tool, and http driver */
    GUEST_HOOK,           /* all of its interfaces link; grants decide what they answer */
    GUEST_PROCESS_DRIVER, /* empty: no WASI grants, no HTTP, no murmur imports */
};

#define LINKAGE_MAX 12

/* The interfaces of this kind, in table order. Returns how many (<= LINKAGE_MAX). */
size_t
linkage_interfaces (enum guest_kind kind, const struct host_interface *interfaces[LINKAGE_MAX]);

/* One interface's context. */
struct linkage_context {
    const struct host_interface *interface;
    void *ctx;
};

/* Fills <bindings> for a guest of this kind: each interface of the table with its context from
 * <contexts>, or NULL where none is given (the interface then links and answers as its header says
 * for a NULL context). Returns the count. */
size_t linkage_bind (enum guest_kind kind, const struct linkage_context *contexts,
                     size_t context_count, struct host_binding bindings[LINKAGE_MAX]);
