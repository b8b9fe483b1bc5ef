/* SPDX-License-Identifier: Apache-2.0
 *
 * What an address of the page's data says: /api/VIEW?..., /api/session/ID[/VIEW[/LEAF]]?...
 *
 * Always true: what is not of that shape is none of ours; no part of it is a path of a file.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct ui_target {
    char *session; /* NULL: it is about no session */
    char *view;    /* "rows"; "" for a session itself */
    char *leaf;    /* NULL: none */
    char *query;   /* as it came */
};

bool ui_target_read (struct ui_target *t, const char *target);
/* A value of the query, decoded; NULL: it is not there, or is no text. Owned. */
char *ui_target_query (const struct ui_target *t, const char *name);
/* The same as a number. */
uint64_t ui_target_number (const struct ui_target *t, const char *name, uint64_t fallback);
void ui_target_clear (struct ui_target *t);
