/* SPDX-License-Identifier: Apache-2.0
 *
 * How a guest of this session is made: its directories, variables, network and host interfaces,
 * exactly what was granted (docs/spec/containment.md 2, docs/spec/session.md 4.2).
 *
 * Always true: an artifact never falls back to the whole work folder, or to nothing, for a folder
 * that cannot be opened.
 */
#pragma once

#include "base/error.h"
#include "engine/form_cache.h"
#include "net/allow.h"

struct session;
struct staged_artifact;

/* Step 9. The threads the engine starts never take the signals of an ending. E-RUN-001. */
bool stage_engine (struct session *s, struct mur_error **err);
/* After every guest and component. */
void guests_free (struct session *s);
struct engine *guests_engine (const struct session *s);
/* The component of these bytes, compiled or from the form cache. <sha256> is of them. NULL with
 * *err. */
struct component *guests_compile (struct session *s, const char *sha256, form_wasm_fn *give,
                                  void *ctx, struct mur_error **err);

/* Opens the scoped and state directories of every artifact and parses its allow list. E-CAP-002,
 * E-CAP-009, E-CAP-001. */
bool stage_guests (struct session *s, struct mur_error **err);
/* One artifact that came later: both halves at once. */
bool
guests_add (struct session *s, struct staged_artifact *a, const char *url, struct mur_error **err);
/* What a script may reach over the network. */
bool guests_allow_script (struct session *s, struct mur_error **err);
const struct allow_list *guests_script_allow (const struct session *s);
