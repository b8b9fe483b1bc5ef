/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversation records as files: ~/.murmur/conversations/<record>/<context>/conversation.jsonl
 * (spec/records.md 4).
 *
 * The session appends to records itself (session/conversation/conversation.h). Always true: reading
 * creates nothing and follows no link below conversations/; a message line is a JSON object with a
 * string role, anything else in the file is invisible here; a cut keeps the bytes of what stays.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct conversation_line {
    size_t start; /* of the line in text */
    size_t len;   /* without its line end */
    json_t *message;
    const char *id; /* borrowed, "" when the line has none */
};

struct conversation_file {
    char *record;
    char *context_id;
    char *dir;  /* the context's directory */
    char *path; /* dir/conversation.jsonl */
    uint64_t bytes;
    uint64_t touched_ms;
    json_t *header; /* the murmur.record line, or NULL */
    struct buf text;
    struct conversation_line *lines; /* messages, in order */
    size_t len;
};

struct conversation_files {
    struct conversation_file *items; /* by record, then context */
    size_t len, cap;
};

/* Reads every record, or those of one store (<record>) and one context (<context_id>), either NULL
 * for all. Nothing there is an empty list. E-IO-003. */
bool conversation_files_read (const char *record, const char *context_id,
                              struct conversation_files *out, struct mur_error **err);
void conversation_files_free (struct conversation_files *f);

/* "truncated" of the header, or NULL. Borrowed. */
const json_t *conversation_truncated (const struct conversation_file *f);
/* The harness session kept beside the record, or NULL. */
json_t *conversation_harness (const struct conversation_file *f);

/* Drops all but the newest <keep> messages (at least 1), header written or updated, by temp file
 * and rename. *dropped receives how many went (0: nothing was written). E-IO-003. */
bool conversation_cut (const struct conversation_file *f, uint64_t keep, uint64_t *dropped,
                       struct mur_error **err);
/* Removes the context's directory. */
bool conversation_remove (const struct conversation_file *f, struct mur_error **err);
