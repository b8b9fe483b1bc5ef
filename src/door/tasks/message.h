/* SPDX-License-Identifier: Apache-2.0
 *
 * A message as a client sends it, read strictly in the order of spec/door.md 5.1, and the text the
 * agent reads of it (5.2).
 */
#pragma once

#include "base/buf.h"
#include "door/tasks/task_json.h"

/* Why a message was refused: what the JSON-RPC error is made of. */
struct message_fault {
    int code; /* -32602, -32005, -32003 */
    char *text;
    int part_index;   /* -32005: the part; -1 otherwise */
    char *media_type; /* -32005; NULL when not set */
};
void message_fault_clear (struct message_fault *f);

struct message {
    char *message_id;
    char *task_id;      /* NULL: none */
    char *context_id;   /* NULL: none */
    char *text;         /* parts joined */
    char *part_kinds;   /* a letter for each part: 't' text, 'd' data */
    const json_t *data; /* of the first data part, borrowed from the params; NULL: none */
    struct strv references;
    bool forgets_session;
    bool uses_door_metadata;
    bool returns_immediately;
};
void message_clear (struct message *m);

/* Reads SendMessage's params. <has_harness>: forgetSession means something here. False with *fault
 * set. */
bool message_read (const json_t *params, bool has_harness, struct message *out,
                   struct message_fault *fault);

/* One line of "Referenced tasks:"; view NULL: not held, or not to be seen. */
void message_append_reference (struct buf *out, const char *id, const struct task_view *view);
