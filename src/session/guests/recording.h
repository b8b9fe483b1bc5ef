/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session is given from outside, kept as it comes (trace.capture: replay), and given again
 * where a session runs again: places of guests and calls, files, variables, people's replies
 * (docs/spec/records.md 14).
 *
 * Always true: a session that neither records nor is a replay of such a record has no recording:
 * every function here is one branch then. A place is counted the same way both times.
 */
#pragma once

#include "replay/record/tape_read.h"
#include "replay/tape/tree_store.h"

struct session;
struct staged_artifact;

/* What outside gave a tool that asked a person. */
struct recording_reply {
    char *text; /* owned; NULL: none came */
    bool has_timed_out;
};

/* Once variables of guests and MURMUR.md are made, before any guest is. E-RUN-050, E-IO-003. */
bool recording_begin (struct session *s, const char *url, struct mur_error **err);
/* The tape is whole. */
void recording_end (struct session *s);
void recording_free (struct session *s);

struct tape *recording_tape (const struct session *s);
/* The ordinal of the running task. */
size_t recording_task_number (const struct session *s);

/* The next task began: its files are kept. */
void recording_task (struct session *s);
/* A call of a turn begins; is over, and files may be others than before. */
void recording_call (struct session *s, uint64_t turn);
void recording_call_over (struct session *s, bool may_have_written, bool is_promised);
/* The replay leaves the record before this turn of the running task: the files are as they were
 * then. */
void recording_fork (struct session *s, uint64_t turn);
/* The place of a guest that is made now, the same at each run. Owned; NULL: there is no recording.
 */
char *recording_place (struct session *s, const struct staged_artifact *a);
/* The key of that guest's random numbers. */
void recording_key (const struct session *s, const char *place, unsigned char out[32]);

/* A person was asked, and this came. */
void recording_keep_reply (struct session *s, const char *prompt, const struct recording_reply *r);
/* What came of the question asked next: false, there is none in the record. */
bool recording_next_reply (struct session *s, struct recording_reply *out, struct mur_error **err);
