/* SPDX-License-Identifier: Apache-2.0
 *
 * The conversation record of one context: every message in the order it entered
 * (docs/spec/session.md 11, docs/spec/records.md 4).
 *
 * Nothing here fails a task: what cannot be written or read is reported once an attempt. Always
 * true: an id counts as recorded only once its line is on disk, and is never written twice.
 */
#pragma once

#include "base/error.h"
#include "session/conversation/fence.h"
#include "session/conversation/messages.h"

#include <stdint.h>

struct conversation;

/* The record <store>/<context_id>; nothing is created or opened yet. <retain_owner> is the
 * capsule's name when the manifest declares context.retain (a header line then comes first), else
 * NULL. <store> NULL: nothing is recorded. */
struct conversation *
conversation_new (const char *store, const char *context_id, const char *retain_owner);
void conversation_free (struct conversation *c);
DEFINE_CLEANUP (struct conversation, conversation_free)

const char *conversation_context (const struct conversation *c);
/* Of the record as far as it was written here; 0: nothing was. */
uint64_t conversation_bytes (const struct conversation *c);
/* Removes another context's record of the same store, unless it is not <bytes> long any more. Its
 * folder stays when more lies in it. Failures are silent. */
void conversation_remove_unchanged (const struct conversation *c, const char *context_id,
                                    uint64_t bytes);

/* Gives a record that is there and has no owner <owner>'s header, so that retention may cut it. */
void conversation_adopt (const char *store, const char *context_id, const char *owner);
/* Loads the record's messages to the end of <list>; a missing record loads nothing. Malformed lines
 * are skipped and reported. With <word> (else NULL) ends of fences get it. */
void conversation_load (struct conversation *c, const struct fence_word *word,
                        struct message_list *list);
/* Appends every message of the list that is not recorded yet, in order. */
void conversation_append (struct conversation *c, const struct message_list *list);
/* Appends one message that never enters the list (a canceled reply). */
void conversation_append_one (struct conversation *c, struct message *m);
/* A new attempt: a failure may be reported again. */
void conversation_new_attempt (struct conversation *c);
