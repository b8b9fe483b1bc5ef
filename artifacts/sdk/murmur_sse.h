/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events: bytes in, in pieces of any size; the data of each event out.
 */
#ifndef MURMUR_SSE_H
#define MURMUR_SSE_H

#include "murmur_sdk.h"

struct mur_sse {
    /* `data` is zero-terminated. */
    void (*take) (void *context, const char *data, size_t len);
    void *context;
    bool keeps_bytes;      /* what is no UTF-8 stays as it is, in place of U+FFFD */
    struct mur_text event; /* the name of the event whose data is taken; empty: none */
    struct mur_text line;
    struct mur_text data;
    bool has_data;
    bool is_after_cr;
    bool is_started;
};

void mur_sse_feed (struct mur_sse *sse, const char *bytes, size_t len);
/* The stream is over: an event whose last empty line is missing is handed on too. */
void mur_sse_end (struct mur_sse *sse);

#endif
