/* SPDX-License-Identifier: Apache-2.0
 *
 * Endings: what out/result.txt says, how an attempt's ending is spelled, how runs fold into the
 * launch's (docs/spec/session.md 4.4, 5.2, 15.3).
 *
 * What gives an attempt its ending, all of it on the thread of the task loop:
 *
 *     (begins) -> FAILED         attempt_end_clear: nothing better is known yet
 *     FAILED   -> OK             attempt_complete
 *     FAILED   -> FAILED         attempt_fail, attempt_error, attempt_take_refusals: with a reason
 *     FAILED   -> MAX_TURNS      attempt_end_max_turns
 *     FAILED   -> SPEND_CEILING  attempt_end_spend
 *     any      -> CANCELED       attempt_cancel; one the deadline spares writes nothing
 *     any      -> NO_ANSWER      attempt_decline; not of a canceled one, nor after task_failed
 *     OK       -> REOPEN_BUDGET  attempt_refuse_reopen: the answer stays where it is
 *     a limit  -> OK             attempt_complete, with an earlier answer that stands
 *
 * Always true: out/result.txt follows from the ending, but for an error of the loop itself, which
 * writes none.
 */
#pragma once

#include "session/state/running_task.h"
#include "trace/lines/writer.h"

/* "ok", "failed", "max_turns_reached", "spend_ceiling_reached", "canceled", "no_answer". */
const char *attempt_ending_name (enum attempt_ending ending);

/* What an attempt begins with: nothing said, and failed until something better is known. */
void attempt_end_clear (struct attempt_end *e);

/* Writes out/result.txt and, under a threaded conversation, out/result_<task id>.txt. A refused
 * path is latched. */
void result_write (struct session *s, const struct running_task *t, const char *text);

/* Ends an attempt: the text of out/result.txt follows from the ending. */
void attempt_complete (struct session *s, struct running_task *t, const char *answer);
void attempt_fail (struct session *s, struct running_task *t, const char *cause, const char *reason,
                   const char *retry_note, struct trace_num turn);
/* A finished answer was to be worked on again and could not be: it stays where it is. */
void attempt_refuse_reopen (struct session *s, struct running_task *t, const char *reason);
void attempt_cancel (struct session *s, struct running_task *t, const char *phase,
                     struct trace_num turn);
/* The same for a cancel no standing answer is spared from: the door accepted it. */
void attempt_cancel_unspared (struct session *s, struct running_task *t, const char *phase,
                              struct trace_num turn);
/* An accepted end-without-answer makes an attempt that did not fail end without one; true when it
 * did. */
bool attempt_decline (struct session *s, struct running_task *t);
/* The loop itself failed: nothing is written to out/; takes the error over. */
void attempt_error (struct session *s, struct running_task *t, struct mur_error *error);
/* Drains the refusal latch; true when it held something, the attempt has failed then. */
bool attempt_take_refusals (struct session *s, struct running_task *t);
/* The answer of an attempt that ended well stands from now on: a deadline cannot throw it away.
 * False when the task was cancelled. Decided under the lock the deadline cancels under. */
bool attempt_let_answer_stand (struct session *s, struct running_task *t);
/* Turns left for the task, UINT64_MAX without a cap. */
uint64_t attempt_turns_left (const struct session *s, const struct running_task *t);
/* Ends the attempt: no turn is left; a spend ceiling stands in the way. */
void attempt_end_max_turns (struct session *s, struct running_task *t);
void attempt_end_spend (struct session *s, struct running_task *t, const struct spend_refusal *r);
