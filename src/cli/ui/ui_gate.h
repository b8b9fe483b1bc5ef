/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may ask the page's server: decided by the head alone, before a body is read.
 *
 * Always true: a refusal is the same bytes whatever was wrong; the token is compared in constant
 * time and is in no answer, log or argument; nothing of another site's page gets past Host, Origin
 * and Sec-Fetch-Site, whatever it knows.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "net/server/http_exchange.h"

struct ui_gate;

/* A fresh token, or with <token_file> the one in it, which is made with mode 0600 when it is
 * missing. E-IO-003, E-IO-002: the file is no file of this user's own, or others may read it. */
struct ui_gate *ui_gate_new (const char *token_file, struct mur_error **err);
void ui_gate_free (struct ui_gate *g);
DEFINE_CLEANUP (struct ui_gate, ui_gate_free)
/* The names a browser may call us by: 127.0.0.1, localhost and [::1] with the port, and <allowed>
 * (may be NULL). */
void ui_gate_set_hosts (struct ui_gate *g, unsigned port, const char *allowed);
const struct secret *ui_gate_token (const struct ui_gate *g);

/* What is asked for: decides what has to be shown. */
enum ui_gate_class {
    UI_GATE_PAGE, /* the page's own files: no token yet */
    UI_GATE_DATA,
    UI_GATE_ACT, /* changes something: a body of JSON */
};

/* True: it may be answered. Else it was refused. */
bool ui_gate_admits (const struct ui_gate *g, struct http_exchange *x, enum ui_gate_class class);
/* An answer with the heads every answer has. <type> of the content; <more> further lines, may be
 * NULL. */
void ui_reply (struct http_exchange *x, int status, const char *type, const char *body, size_t len);
/* The same with a text taken over. */
void ui_reply_take (struct http_exchange *x, int status, const char *type, char *body, size_t len);
/* A value as text; taken over. */
void ui_reply_json (struct http_exchange *x, int status, json_t *value);
/* {"error": ...} for a person. */
void ui_reply_error (struct http_exchange *x, int status, const char *fmt, ...) _printf_ (3, 4);
/* A stream of server-sent events or lines. NULL as http_reply_stream. */
struct http_stream *ui_reply_stream (struct http_exchange *x, const char *type,
                                     const struct http_stream_source *source, void *ctx);
