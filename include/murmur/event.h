/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session says while it runs. An event is the caller's own and never changes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mur_event;

enum mur_event_kind {
    MUR_EVENT_STATUS = 1,      /* text: "inference turn 2", "resumed", ... */
    MUR_EVENT_TEXT = 2,        /* text: a piece of the answer as the model writes it */
    MUR_EVENT_THINKING = 3,    /* text: a piece of its reasoning */
    MUR_EVENT_TOOL_CALL = 4,   /* text: the tool's name; a call begins */
    MUR_EVENT_TOOL_RESULT = 5, /* text: what the model was given; the tool's name is in the JSON */
    MUR_EVENT_QUESTION = 6,    /* text: what is asked; mur_session_answer goes on */
    MUR_EVENT_ANSWER = 7,      /* text: the whole answer of a task */
    MUR_EVENT_TASK_ENDED = 8,  /* text: why, or NULL; the last event of its task */
    MUR_EVENT_LOST = 9,        /* text: how many events were not kept for a reader this slow */
    MUR_EVENT_LOG = 10,        /* text: a line for people */
    MUR_EVENT_ENDED = 11,      /* text: the session's ending, "ok", "failed", ...; the last event */
    MUR_EVENT_OTHER = 12,      /* a kind this version does not know: the JSON has it */
};

/* Strings live as long as the event. Of NULL these know nothing: MUR_EVENT_OTHER, NULL. */

/* What of the above it is. MT-Safe. */
enum mur_event_kind mur_event_kind (const struct mur_event *e);
/* "tsk_..."; NULL: of no task. MT-Safe. */
const char *mur_event_task (const struct mur_event *e);
/* "ctx_..."; NULL: of no conversation. MT-Safe. */
const char *mur_event_context (const struct mur_event *e);
/* UTF-8; NULL where the kind has none. MT-Safe. */
const char *mur_event_text (const struct mur_event *e);
/* MUR_EVENT_TASK_ENDED: "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", ...; else NULL. MT-Safe. */
const char *mur_event_state (const struct mur_event *e);
/* The A2A event it was read from, compact JSON; NULL for LOG and ENDED. MT-Safe. */
const char *mur_event_json (const struct mur_event *e);
/* NULL is fine. MT-Safe race:e. */
void mur_event_free (struct mur_event *e);

#ifdef __cplusplus
}
#endif
