/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a conversation: what the runtime knows of each, and the very bytes the driver is
 * sent (docs/spec/session.md 5.3).
 *
 * Always true: an id is minted once; the wire text holds none of the runtime's own keys, is
 * serialised once and never edited, so a request's prefix is the same bytes on every turn.
 */
#pragma once

#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"

enum message_role {
    MESSAGE_USER,
    MESSAGE_ASSISTANT,
    MESSAGE_TOOL,
};

struct message {
    char *id; /* "msg_..." */
    enum message_role role;
    char *wire; /* compact JSON with sorted keys, as sent */
    size_t wire_len;
    size_t content_len;           /* of the content array, which begins right after {"content": */
    char sha[SHA256_HEX_LEN + 1]; /* of wire, "" until asked for */
    uint64_t tokens;              /* valid when is_counted */
    bool is_counted;
    bool is_recorded; /* its line is in the conversation record */
    bool is_stored;   /* its body is among the blobs */

    /* Runtime-owned keys; NULL or false when unset. */
    char *source_id;
    char *inserted_by;
    char *fence; /* label its text was fenced under */
    char *produced_by_driver, *produced_by_model;
    bool is_canceled;
    bool is_truncated;

    /* What another model is sent of it, made when first asked for. */
    struct message *bare; /* NULL: not made, or the same as this */
    bool is_bare_known;
    bool is_bare_empty; /* nothing is left of it */
};

struct message_list {
    struct message **items; /* owned */
    size_t len;
    size_t cap;
};

/* A user message of one text block. <fence> may be NULL. */
struct message *message_new_user (const char *text, size_t len, const char *fence);
/* An assistant message from the content array of a driver's answer (borrowed). */
struct message *message_new_assistant (const json_t *content);
/* A message of any role from its content array (borrowed); <tool_call_id> is a tool message's. */
struct message *message_new_content (enum message_role role, const json_t *content,
                                     const char *tool_call_id, bool is_error);
/* A tool message of one text block. */
struct message *message_new_tool (const char *tool_call_id, bool is_error, const char *text,
                                  size_t len, const char *fence);
/* A message read back from a record: any object with a string role. NULL when it is none. */
struct message *message_from_record (const json_t *line);
void message_free (struct message *m);
DEFINE_CLEANUP (struct message, message_free)
#define _cleanup_message_ _cleanup_ (message_freep)

/* Appends the message as the record holds it: content, role and the runtime's keys, sorted, no
 * newline. */
void message_append_line (const struct message *m, struct buf *out);
/* The message without its thinking blocks: the message itself when it has none, NULL when nothing
 * else is in it. Borrowed. */
struct message *message_without_thinking (struct message *m);
/* Names the choice that made it. */
void message_set_producer (struct message *m, const char *driver, const char *model);
/* The digest of the wire text. Borrowed. */
const char *message_sha (struct message *m);
/* Tokens of the wire text, counted once. */
uint64_t message_tokens (struct message *m);

/* Adds at the end, taking the message over. */
void message_list_add (struct message_list *l, struct message *m);
/* Empties the list, freeing the messages. */
void message_list_clear (struct message_list *l);
#define _cleanup_messages_ _cleanup_ (message_list_clear)
/* The index of an id, or -1. */
long message_list_find (const struct message_list *l, const char *id);
