/* SPDX-License-Identifier: Apache-2.0
 *
 * One store: a fresh guest and its HTTP side (docs/spec/containment.md 2).
 *
 * Always true: each call gets a fresh instance; the inference gateway is attached only when the
 * caller hands it in.
 */
#pragma once

#include "engine/guest.h"
#include "host/linkage.h"

struct gateway;
struct guest;
struct guest_http;
struct session;
struct staged_artifact;

struct guest_setup {
    const struct component *component;
    const struct staged_artifact *artifact; /* NULL: the script capsule */
    enum guest_kind kind;
    char *const *env;
    struct gateway *gateway; /* attached to this store, or NULL */
    const struct linkage_context *contexts;
    size_t context_count;
    struct cancel *cancel;
};

/* One store: a guest and its HTTP side. */
struct guest_store {
    struct guest *guest;
    struct guest_http *http;
    struct senses *senses; /* NULL: the host's own */
};

/* Instantiates. False with *ending and *err set as by guest_new. */
bool
guest_store_open (struct session *s, const struct guest_setup *setup, struct guest_store *store,
                  enum guest_ending *ending, struct mur_error **err);
void guest_store_close (struct guest_store *store);
#define _cleanup_store_ _cleanup_ (guest_store_close)
