/* SPDX-License-Identifier: Apache-2.0
 *
 * One request to mur-roost: plain http, JSON both ways, a token in a header (spec/spawn.md A3).
 *
 * Always true: what was sent is in no message.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "net/http_client.h"

struct roost_request {
    const char *url;    /* the daemon's, with or without trailing slashes */
    const char *path;   /* "/spawn" */
    const char *header; /* the token's; NULL: none */
    const struct secret *token;
    const json_t *body;        /* NULL: GET */
    uint64_t total_timeout_ms; /* 0: 30 s for each step */
    struct cancel *cancel;     /* may be NULL */
};

struct roost_refusal {
    char *text;      /* owned: the daemon's own sentence where it said one */
    bool is_unheard; /* it could not be asked: the text is the transport's */
};

/* The object of a 2xx answer, an empty one when it held anything else (it is never quoted: a token
 * may be in it). NULL with the refusal filled. */
json_t *roost_ask (struct http_client *http, const struct roost_request *request,
                   struct roost_refusal *refusal);
