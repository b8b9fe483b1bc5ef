/* SPDX-License-Identifier: Apache-2.0
 *
 * A running session: a process of its own, which lives as long as its handle or until it ends by
 * itself. There is no detaching: should this process die by any means, the session learns it and
 * winds down.
 *
 * Any number of sessions run at once. Strings that are returned live as long as the handle, unless
 * it says owned: those are freed with free(3). Of NULL instead of a session or a request all know
 * nothing: NULL, 0, false, -1 for a descriptor, E-IO-003 where there is an error; that has ended.
 * The library starts threads of its own, which take no signal, takes no signal handler, writes to
 * no stream and changes no variable of this process. It does not mind if this process ignores
 * SIGCHLD or reaps every child of its own.
 *
 * After fork(2) the copy has no sessions: calls fail or do nothing there, and mur_session_free only
 * closes its descriptors. A copy that lives on without execve(2) should call it: until then the
 * session does not learn of its launcher's death.
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
 * have said; then nothing is left of it. MT-Safe env race:r. */
struct mur_session *mur_session_launch (const struct mur_request *r, struct mur_error **err);
/* Ends the session (mur_session_end) and frees the handle. NULL is fine. MT-Safe race:s. */
void mur_session_free (struct mur_session *s);

/* "ses_...". MT-Safe. */
const char *mur_session_id (const struct mur_session *s);
/* "host:port" of its A2A door; "": a script capsule, which takes no tasks. MT-Safe. */
const char *mur_session_address (const struct mur_session *s);
/* The operator's token for that door; NULL: it wants none. MT-Safe. */
const char *mur_session_token (const struct mur_session *s);
/* The token of one of the names below `network.authentication` of its manifest; NULL: none.
 * MT-Safe. */
const char *mur_session_token_of (const struct mur_session *s, const char *name);
/* The folder it works in, absolute. MT-Safe. */
const char *mur_session_workdir (const struct mur_session *s);
/* The folder of its records, absolute: trace.jsonl is there. MT-Safe. */
const char *mur_session_records (const struct mur_session *s);

/* Sends a task. <context_id> NULL: a new conversation, or the one the session has. Returns the
 * task's id (owned) without waiting for it; its events follow. NULL: E-RUN-040 it was rejected,
 * E-RUN-022 the session has ended, E-RUN-023 it is a script, E-IO-003 the door did not answer or
 * the text is no UTF-8. MT-Safe. */
char *mur_session_send (struct mur_session *s, const char *text, size_t len, const char *context_id,
                        struct mur_error **err);
/* Answers what a task asks (MUR_EVENT_QUESTION). False: nobody waits for it (any more), or it is no
 * answer (E-RUN-040, E-IO-003), or as mur_session_send. MT-Safe. */
bool mur_session_answer (struct mur_session *s, const char *task_id, const char *text,
                         struct mur_error **err);
/* Cancels a task. False: it has ended (E-IO-003), or as mur_session_send. MT-Safe.
 */
bool mur_session_cancel (struct mur_session *s, const char *task_id, struct mur_error **err);

/* A descriptor that is readable while an event waits, and for good once the session has ended: for
 * poll(2), not to be read, and closed with the handle. MT-Safe. */
int mur_session_fd (const struct mur_session *s);
/* The next event (owned), waiting up to <timeout_ms> for it, for ever when that is negative. NULL:
 * none came, MUR_EVENT_ENDED was taken before, or events go to a callback. A signal does not end
 * the wait: a program that waits for one polls the descriptor. MT-Safe: of several
 * that wait one gets the event. */
struct mur_event *mur_session_next (struct mur_session *s, int64_t timeout_ms);

/* Asks it to wind down, waits, kills what is left after 25 s. True when it had ended or ended by
 * itself in that time. Its last events can still be taken. A callback for keys that runs is waited
 * for, too. MT-Safe. */
bool mur_session_end (struct mur_session *s);
/* Whether it runs. MT-Safe. */
bool mur_session_is_running (const struct mur_session *s);

/* How it ended, as the trace says; NULL while it runs: "ok", "failed", "trapped",
 * "max_turns_reached", "spend_ceiling_reached", "canceled", "deadline_reached", "formation_ended";
 * new ones may come. MT-Safe. */
const char *mur_session_status (const struct mur_session *s);
/* Why, where it said so with a code; NULL: it runs, or it did not fail. Lives as long as the
 * handle. MT-Safe. */
const struct mur_error *mur_session_error (const struct mur_session *s);
/* Its last whole answer (owned), of whichever task; NULL: it has given none. MT-Safe. */
char *mur_session_result (const struct mur_session *s);

enum mur_total {
    MUR_TOTAL_TURNS = 1,
    MUR_TOTAL_INPUT_TOKENS = 2,
    MUR_TOTAL_OUTPUT_TOKENS = 3,
    MUR_TOTAL_DURATION_MS = 4,
};
/* What it used, once it has ended; 0 before. MT-Safe. */
uint64_t mur_session_total (const struct mur_session *s, enum mur_total which);

/* "0.1.0", of this library. Static storage. MT-Safe. */
const char *mur_version (void);

#ifdef __cplusplus
}
#endif
