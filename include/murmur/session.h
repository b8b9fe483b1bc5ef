/* SPDX-License-Identifier: Apache-2.0
 *
 * A running session: a process of its own, which lives as long as its handle or until it ends by
 * itself. There is no detaching: should this process die by any means, the session learns it and
 * winds down.
 *
 * Any number of sessions run at once. All functions but mur_session_free may be called from several
 * threads at once; strings that are returned live as long as the handle, unless it says owned:
 * those are freed with free(3). The library starts threads of its own, takes no signal handler,
 * writes to no stream and changes no variable of this process.
 */
#pragma once

#include "murmur/error.h"
#include "murmur/event.h"
#include "murmur/request.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mur_session;

/* Stages and launches, and waits until the session is ready or over. NULL with what `mur run` would
 * have said; then nothing is left of it. */
struct mur_session *mur_session_launch (const struct mur_request *r, struct mur_error **err);
/* Ends the session (mur_session_end) and frees the handle. NULL is fine. */
void mur_session_free (struct mur_session *s);

/* "ses_..." */
const char *mur_session_id (const struct mur_session *s);
/* "host:port" of its A2A door; "": a script capsule, which takes no tasks. */
const char *mur_session_address (const struct mur_session *s);
/* The operator's token for that door; NULL: it wants none. */
const char *mur_session_token (const struct mur_session *s);
const char *mur_session_workdir (const struct mur_session *s); /* absolute */
const char *mur_session_records (const struct mur_session *s); /* absolute; trace.jsonl is there */

/* Sends a task. <context_id> NULL: a new conversation, or the one the session has. Returns the
 * task's id (owned) without waiting for it; its events follow. NULL: E-RUN-040 it was rejected,
 * E-IO-003 the door did not answer. */
char *mur_session_send (struct mur_session *s, const char *text, size_t len, const char *context_id,
                        struct mur_error **err);
/* Answers what a task asks (MUR_EVENT_QUESTION). False: nobody waits for it (any more), or it is no
 * answer. */
bool mur_session_answer (struct mur_session *s, const char *task_id, const char *text,
                         struct mur_error **err);
/* Cancels a task. False: it has ended. */
bool mur_session_cancel (struct mur_session *s, const char *task_id, struct mur_error **err);

/* A descriptor that is readable while an event waits: for poll(2), not to be read. */
int mur_session_fd (const struct mur_session *s);
/* The next event (owned), waiting up to <timeout_ms> for it, for ever when that is negative. NULL:
 * none came, or MUR_EVENT_ENDED was taken before. */
struct mur_event *mur_session_next (struct mur_session *s, int64_t timeout_ms);

/* Asks it to wind down, waits, kills what is left after 25 s. True when it had ended or ended by
 * itself in that time. Its last events can still be taken. */
bool mur_session_end (struct mur_session *s);
/* Whether it runs. */
bool mur_session_is_running (const struct mur_session *s);

/* How it ended: "ok", "failed", "canceled", ... as the trace says; NULL while it runs. */
const char *mur_session_status (const struct mur_session *s);

enum mur_total {
    MUR_TOTAL_TURNS = 1,
    MUR_TOTAL_INPUT_TOKENS = 2,
    MUR_TOTAL_OUTPUT_TOKENS = 3,
    MUR_TOTAL_DURATION_MS = 4,
};
/* What it used, once it has ended; 0 before. */
uint64_t mur_session_total (const struct mur_session *s, enum mur_total which);

/* "0.1.0", of this library. Static storage. */
const char *mur_version (void);

#ifdef __cplusplus
}
#endif
