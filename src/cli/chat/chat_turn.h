/* SPDX-License-Identifier: Apache-2.0
 *
 * One turn of a conversation: a message, what is shown of the task, and how it came out.
 */
#pragma once

#include "base/json.h"
#include "cli/chat/chat_session.h"
#include "cli/running/token_tally.h"

struct chat_talk {
    struct chat_session *session;
    char *context_id;
    char *question; /* the task that waits for an answer; NULL: none */
    json_t *asked;  /* what it asks, when only some answers are taken; NULL: any text is one */
    json_t *calls;  /* what the last calls of tools came to, the newest last; NULL: none yet */
    struct token_tally tally;
    const char *with;     /* the provider that was asked for by --with, or NULL */
    int signals_fd;       /* -1: signals end the program */
    const char *argument; /* of the command that runs; borrowed */
    bool is_terminal;     /* a person sees it */
    bool has_failed;      /* a turn did not complete */
    bool is_over;         /* the person wants to leave, or the session has ended */
};

/* Sends a text, as the answer to the question when one is open, and shows what comes of it. */
void chat_turn (struct chat_talk *t, const char *text, size_t len);
/* Cancels the task that asks. */
void chat_drop_question (struct chat_talk *t);
/* Takes one signal. True when it asks to leave, not only to cancel. */
bool chat_signal_leaves (int signals_fd);
