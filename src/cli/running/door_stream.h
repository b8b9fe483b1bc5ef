/* SPDX-License-Identifier: Apache-2.0
 *
 * One streaming call to a door: its events, one after the other, on the caller's thread
 * (spec/door.md 8).
 *
 * The network thread only hands bytes over; the caller's parses, and notices when the reader of
 * stdout leaves.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "net/http_client.h"
#include "net/sse.h"

struct door_stream {
    const char *url;            /* "host:port" */
    const struct secret *token; /* NULL: none is sent */
    const char *method;
    const json_t *params; /* NULL: none */
    bool is_extended;     /* the frames of a running task are wanted, too */
    /* One StreamResponse; false: enough. */
    bool (*event) (void *ctx, const json_t *response);
    void *ctx;
    /* May be NULL: called when woken_fd becomes readable; false: enough. */
    bool (*woken) (void *ctx);
    int woken_fd;

    /* Kept from one connection to the next; zero at first. */
    char last_id[24]; /* of the last complete event: where the next connection goes on */
    size_t events;
    struct buf refusal; /* an answer that is no stream */
    struct sse_parser parser;
};

enum door_stream_end {
    DOOR_STREAM_DONE,        /* the caller had enough, or the reader of stdout left */
    DOOR_STREAM_BROKEN,      /* a stream that had begun ended; *why says how */
    DOOR_STREAM_UNREACHABLE, /* no answer; *why says how */
    DOOR_STREAM_REFUSED,     /* the door refused; *err says why: E-IO-003 */
};

/* Calls, and hands events on until the end of this connection. *why is owned by the caller. */
enum door_stream_end door_stream_follow (struct door_stream *s, struct http_client *client,
                                         char **why, struct mur_error **err);
void door_stream_clear (struct door_stream *s);
