/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of `mur top`: one a session of this host, with what it works on, what it asks and what
 * it has used.
 */
#pragma once

#include "cli/running/listing.h"
#include "cli/running/token_tally.h"
#include "net/http_client.h"

struct top_row {
    char *session_id;
    char *capsule; /* "name@version" */
    char *state;   /* "asks", "works", "waits", "no answer" */
    char *asks;    /* what it asks; NULL: nothing */
    char *used;    /* "1,234 tokens in, 56 out, context ..." ; NULL: not known */
    char *uptime;
    char *parent;    /* the session that started it; NULL: none */
    char *work_root; /* where its records are looked for */
};

struct top_rows {
    struct http_client *client;
    struct top_row *items;
    size_t len;
    /* Traces read so far, by session id. */
    struct top_tally {
        char *session_id;
        struct token_tally tally;
        bool is_seen;
    } * tallies;
    size_t tally_len, tally_cap;
};

/* Looks anew. Those that ask stand first, then the newest. E-RUN-028. */
bool top_rows_read (struct top_rows *rows, struct mur_error **err);
void top_rows_clear (struct top_rows *rows);
