/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task asks the person behind it, and what of a message answers it (docs/spec/door.md 9).
 *
 * A question of a tool takes any text. One that is structured goes out as a data part beside its
 * words and takes one of its own answers, as a data part {"question_id", "answer"} or as a word.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct question {
    const char *text;
    const json_t
        *data; /* NULL: any text is an answer. Else "question_id" and "answers" are there */
};

/* What came of it. Owned. */
struct question_reply {
    char *text; /* the message's text, or the answer chosen; NULL: none came */
    char *by;   /* who sent it; NULL: nobody who is known */
    bool has_timed_out;
};
void question_reply_clear (struct question_reply *r);

/* The "question_id" of structured data; NULL without. */
const char *question_id (const json_t *data);
/* The answer a message gives to a structured question: static in <data>. <said> is the text of the
 * message, <sent> its data part or NULL. NULL with *why (owned) when it is none. */
const char *question_answer (const json_t *data, const char *said, const json_t *sent, char **why);
