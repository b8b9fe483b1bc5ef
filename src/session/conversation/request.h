/* SPDX-License-Identifier: Apache-2.0
 *
 * The request a driver is sent, built so that identical inputs give identical bytes and a turn
 * costs only what it adds (docs/spec/session.md 5.1).
 *
 * Always true: keys are sorted; messages are copied from their wire text, once, and stay where
 * they are while the request grows.
 */
#pragma once

#include "session/conversation/messages.h"

/* Who reads a request, where several models share a conversation. */
struct request_reader {
    const char *driver; /* full name; NULL: there is one model, which reads everything */
    const char *model;
    const char *primary_driver, *primary_model; /* who made a message that does not say */
};

struct request {
    /* What stays for a task. */
    char *model;
    struct request_reader reader; /* borrowed strings */
    char *tools;                  /* JSON text of the array */
    char *system;                 /* the system string itself */
    char *cache_key;
    char system_sha[SHA256_HEX_LEN + 1];
    char tools_sha[SHA256_HEX_LEN + 1];
    uint64_t fixed_tokens; /* of everything but the messages */

    /* The text as it was sent last. */
    struct buf text;
    char *continuation_id;
    uint64_t max_tokens;
    size_t messages_end; /* offset right after the last message */
    size_t first, count; /* messages of the list it holds, those left out included */
    bool has_messages;   /* at least one was not left out */
};

/* <name>, <version>, <context_id> make the prompt cache key. Takes tools and system over. */
void request_init (struct request *r, const char *model, char *tools, char *system,
                   const char *name, const char *version, const char *context_id);
/* Another reader, and with it another model: the next request is built anew when it differs. */
void request_set_reader (struct request *r, const struct request_reader *reader);
/* The message as this request's reader is sent it, or NULL when it is left out. Borrowed. */
struct message *request_view (const struct request *r, struct message *m);
/* Another tool array, taken over: the next request is built anew. */
void request_set_tools (struct request *r, char *tools);
void request_free (struct request *r);
/* Builds the request of list[first..len). The text is valid until the next call. */
void request_build (struct request *r, struct message_list *list, size_t first, uint64_t max_tokens,
                    const char *continuation_id);
/* The list was replaced: nothing of the last text may be kept. */
void request_forget (struct request *r);
/* The runtime's estimate of the whole payload: all of the list, whatever a continuation leaves out.
 */
uint64_t request_tokens (struct request *r, struct message_list *list);
/* "<name>:<version>:<context>", or its 64-byte form. Owned. */
char *request_cache_key (const char *name, const char *version, const char *context_id);
