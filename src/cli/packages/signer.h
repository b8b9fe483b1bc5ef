/* SPDX-License-Identifier: Apache-2.0
 *
 * Who signed what lies in a store, in the words of a table.
 */
#pragma once

#include "artifact/store/store.h"

/* The name of the trusted key that signed a stored version, "an unknown key" or "broken". Owned;
 * NULL: it has no signature. */
char *store_signer (const struct store *store, const char *name, const char *version);
