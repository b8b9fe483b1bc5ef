/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur install` without an argument: everything the manifest declares, fetched side by side, pinned
 * one after the other.
 *
 * Order: where is each entry (stores, else source); then owners and fits of all, which abort
 * everything; then fetches, whose failures are collected; then pins, one lock write, the report,
 * compiled forms.
 */
#pragma once

#include "artifact/sources/install.h"

/* Everything the project's manifest declares; opened without is_global, which may be set
 * afterwards: into the global store, pinning nothing. *any_failed: the report on stdout says what;
 * no error is set for it. */
bool install_manifest (struct install *in, bool *any_failed, struct mur_error **err);

/* Mends a murmur.lock that a merge left with conflict marks; nothing without any. Before
 * install_open. E-IO-001 without a project, E-RUN-003, E-REG-005, E-MAN-*. */
bool install_resolve_lock (struct mur_error **err);
