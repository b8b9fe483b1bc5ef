/* SPDX-License-Identifier: Apache-2.0
 *
 * What inference lines said was sent, so that the next one need only say what is new: a line of
 * each turn of a long conversation stays short, and the trace linear in its turns
 * (docs/spec/records.md 3.6).
 *
 * Always true: the lists of the SENT_LISTS lines last remembered are known, no more; one that goes
 * on from another takes its place. Thread-safe.
 */
#pragma once

#include "base/cleanup.h"

#include <stddef.h>

#define SENT_LISTS   4  /* conversations that take turns */
#define SENT_IN_FULL 16 /* messages a line always lists itself */

struct sent_lists;

/* Borrowed texts; sha is "" where nothing was hashed. */
struct sent_message {
    const char *id, *sha;
};

/* The first <kept> messages are those of the line <after>; "" for a line that lists all of its
 * own. */
struct sent_base {
    char after[40];
    size_t kept;
};

struct sent_lists *sent_lists_new (void);
/* l may be NULL. */
void sent_lists_free (struct sent_lists *l);
DEFINE_CLEANUP (struct sent_lists, sent_lists_free)

/* How short a line of these messages can be: the remembered line that shares the longest
 * beginning. Messages without a sha agree by their ids alone. */
struct sent_base
sent_lists_find (struct sent_lists *l, const struct sent_message *messages, size_t count);
/* The line <event_id> stands in the file and says that it sent all of these, <base> found for
 * them. */
void sent_lists_add (struct sent_lists *l, const char *event_id, const struct sent_base *base,
                     const struct sent_message *messages, size_t count);
/* The first <count> messages of the line <after> in a list the caller frees, or NULL when it is
 * not remembered or had fewer. The texts are borrowed until the next call that adds. */
struct sent_message *sent_lists_first (struct sent_lists *l, const char *after, size_t count);
