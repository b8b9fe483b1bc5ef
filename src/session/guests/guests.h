/* SPDX-License-Identifier: Apache-2.0
 *
 * How a guest of this session is made: its directories, variables, network and host interfaces,
 * exactly what was granted (spec/containment.md 2, spec/session.md 4.2).
 *
 * Callers: turn.c (driver), dispatch.c (tools), script.c. Always true: each call gets a fresh
 * instance; the inference gateway is attached only when the caller hands it in.
 */
#pragma once

#include "host/linkage.h"
#include "session/state/session.h"

/* Opens the scoped and state directories of every artifact and parses its allow list. E-CAP-002,
 * E-CAP-009, E-CAP-001. */
bool stage_guests (struct session *s, struct mur_error **err);
/* One artifact that came later: both halves at once. */
bool
guests_add (struct session *s, struct staged_artifact *a, const char *url, struct mur_error **err);
/* Fills the variables of every guest once the door's URL is known ("" for a script). */
void guests_set_env (struct session *s, const char *url);

/* Host values of capabilities.env.allow, past the credential filter, added to <env>. */
void guest_env_add_allowed (const struct policy *p, struct strv *env);
/* Sets a variable, replacing an earlier value; NULL takes it away. */
void guest_env_set (struct strv *env, const char *name, const char *value);

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
};

/* Instantiates. False with *ending and *err set as by guest_new. */
bool
guest_store_open (struct session *s, const struct guest_setup *setup, struct guest_store *store,
                  enum guest_ending *ending, struct mur_error **err);
void guest_store_close (struct guest_store *store);
#define _cleanup_store_ _cleanup_ (guest_store_close)
