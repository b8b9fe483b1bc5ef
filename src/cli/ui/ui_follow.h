/* SPDX-License-Identifier: Apache-2.0
 *
 * The door of one running session, followed: what its model writes goes to the pages as it comes,
 * and what of the present turn was written so far is kept for a page that opens later.
 *
 * Always true: the door's token stays here; text beyond what is kept still reaches open pages.
 */
#pragma once

#include "cli/ui/ui_hub.h"
#include "home/running.h"

struct ui_follow;

struct ui_follow_spec {
    struct http_client *client;
    struct ui_hub *hub;
    const char *session_id;
    const char *url; /* "localhost:port" */
    const struct secret *token;
    int wake_fd; /* an event descriptor, written to when something of a task has changed */
};

/* Begins at once; everything of <spec> but client, hub and wake_fd is copied. */
struct ui_follow *ui_follow_new (const struct ui_follow_spec *spec);
void ui_follow_free (struct ui_follow *f);
/* The connection ended; a new one is begun by ui_follow_again. */
bool ui_follow_is_over (struct ui_follow *f);
void ui_follow_again (struct ui_follow *f);
/* Whether a task changed since this was asked last. */
bool ui_follow_take_change (struct ui_follow *f);
/* Tells what was written and not told yet. */
void ui_follow_tell (struct ui_follow *f);
/* {run, text, thinking, calls[]} of the present turn. Owned. */
json_t *ui_follow_live (struct ui_follow *f);
