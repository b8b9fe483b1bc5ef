/* SPDX-License-Identifier: Apache-2.0
 *
 * The control plane: /control, where whoever holds the session's control token reads and changes
 * what the manifest lets a controller change (spec/door.md 15).
 *
 * Always true: nothing of a body is read before every check that needs none; a secret's value
 * reaches the function that takes it and nothing else.
 */
#pragma once

#include "base/json.h"
#include "trace/lines/writer.h"

struct http_exchange;
struct control_plane;

/* What came of a change. */
struct control_answer {
    unsigned status;    /* 200, or a refusal's */
    const char *reason; /* of a refusal: the trace's word. Static */
    char *message;      /* of a refusal: a sentence without any value. Owned */
    json_t *body;       /* of a 200. Owned */
};

/* The session's side. Thread-safe and quick; <ctx> is control_spec.ctx. */
struct control_ops {
    /* {session_id, settings, secrets}. Owned. */
    json_t *(*show) (void *ctx);
    bool (*has_setting) (void *ctx, const char *name);
    bool (*has_secret) (void *ctx, const char *name);
    void (*set) (void *ctx, const char *token_id, const char *name, const json_t *value,
                 struct control_answer *out);
    void (*set_secret) (void *ctx, const char *token_id, const char *name, const char *value,
                        size_t len, struct control_answer *out);
    void (*forget) (void *ctx, const char *token_id, const char *name, struct control_answer *out);
    /* Whether a presented token is this session's. */
    bool (*is_token) (void *ctx, const char *token);
};

struct control_spec {
    const struct control_ops *ops;
    void *ctx;
    struct trace_writer *trace;
};

struct control_plane *control_plane_new (const struct control_spec *spec);
void control_plane_free (struct control_plane *p);

/* The checks before a body, on the server's thread: answers, or returns how many body bytes to
 * take. */
size_t control_plane_head (struct control_plane *p, struct http_exchange *x);
/* The request with its body. */
void control_plane_answer (struct control_plane *p, struct http_exchange *x);
/* The connection ended inside the body: what is still written to it (owned). */
char *control_plane_truncated (struct control_plane *p, struct http_exchange *x);
