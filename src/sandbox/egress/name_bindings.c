/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/egress/name_bindings.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "net/own_names.h"

#include <stdlib.h>

bool
name_is_rebound (struct in_addr address, const char *name)
{
    const struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = address };
    return address_needs_a_literal ((const struct sockaddr *)&a, name);
}

void
name_bindings_add (struct name_bindings *b, struct in_addr address, const char *name,
                   uint64_t expires_ms)
{
    if (name_is_rebound (address, name))
        return;
    for (size_t i = 0; i < b->len; i++) {
        struct name_binding *known = &b->items[i];
        if (known->address.s_addr == address.s_addr && str_eq (known->name, name)) {
            if (known->expires_ms < expires_ms)
                known->expires_ms = expires_ms;
            return;
        }
    }
    x_grow (b->items, b->len, b->cap);
    b->items[b->len++] = (struct name_binding){ address, x_strdup (name), expires_ms };
}

void
name_bindings_forget (struct name_bindings *b, uint64_t now_ms)
{
    for (size_t i = 0; i < b->len;)
        if (b->items[i].expires_ms <= now_ms) {
            free (b->items[i].name);
            b->items[i] = b->items[--b->len];
        } else {
            i++;
        }
}

void
name_bindings_free (struct name_bindings *b)
{
    for (size_t i = 0; i < b->len; i++)
        free (b->items[i].name);
    free (b->items);
    *b = (struct name_bindings){ 0 };
}
