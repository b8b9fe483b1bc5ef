/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses that allowed names stood for when they were asked: what a connection to an address is
 * judged by.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_binding {
    struct in_addr address;
    char *name;
    uint64_t expires_ms; /* UINT64_MAX: resolved from the allow list at the start */
};

struct name_bindings {
    struct name_binding *items;
    size_t len, cap;
};

/* Whoever answers for a name must not decide that this host's own services are reached. */
bool name_is_rebound (struct in_addr address, const char *name);
/* Adds one, or makes it last longer; not one that is rebound. */
void name_bindings_add (struct name_bindings *b, struct in_addr address, const char *name,
                        uint64_t expires_ms);
void name_bindings_forget (struct name_bindings *b, uint64_t now_ms);
void name_bindings_free (struct name_bindings *b);
