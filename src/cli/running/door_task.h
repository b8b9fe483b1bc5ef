/* SPDX-License-Identifier: Apache-2.0
 *
 * One message to a door, followed until its task ends or asks (spec/door.md 8, 10).
 *
 * A connection that breaks is taken up again as a subscription of the same task, so nothing is sent
 * twice.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "cli/running/watch_view.h"
#include "net/http_client.h"

struct door_task {
    struct http_client *client;
    const char *url;            /* "host:port" */
    const struct secret *token; /* NULL: none is sent */
    struct watch_view *view;    /* NULL: nothing is shown while it goes on. Borrowed. */
    /* May be NULL: called when woken_fd is readable; false: no longer followed. */
    bool (*woken) (void *ctx);
    int woken_fd;
    /* May be NULL: called with what each call of a tool came to (door.md 8.4). */
    void (*called) (void *ctx, const json_t *frame);
    void *ctx;

    /* What was seen. Owned. */
    char *task_id;
    char *state;      /* "TASK_STATE_..."; NULL: not heard of yet */
    char *said;       /* the last status message */
    json_t *question; /* structured, of what it asks; NULL: any text is an answer */
    char *answer;
    bool is_over; /* ended, or it asks */
};

/* The view of a person at standard output. NULL: it is no terminal, or one that cannot move its
 * cursor. */
struct watch_view *door_task_view (void);
/* Follows to the end, to a question, or until nobody wants more (is_over is false then). E-IO-003
 * when the door refused or was lost. */
bool door_task_follow (struct door_task *t, const json_t *params, struct mur_error **err);
bool door_task_asks (const struct door_task *t);
/* Frees what was seen. */
void door_task_clear (struct door_task *t);

/* The newest of a door's tasks with their artifacts; NULL: it did not answer. Owned. */
json_t *door_tasks (struct http_client *client, const char *url, const struct secret *token);
/* The words of a question: of the status, or of the `prompt` artifact. Owned. */
char *door_task_words (const json_t *task);
