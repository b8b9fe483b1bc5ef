/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person does on the page: a launch, a task, an answer, cancel, stop, replay.
 *
 * Always true: what was sent once is done once, however often a button was pressed; an answer to
 * something that has moved on is refused (409) and says what it is now; nothing is done by a
 * read-only page.
 */
#pragma once

#include "cli/ui/ui_world.h"

struct ui_acts;

/* <workdir>: of --workdir, borrowed; NULL: none. */
struct ui_acts *ui_acts_new (struct ui_world *world, struct http_client *client,
                             const char *workdir, bool is_read_only);
void ui_acts_free (struct ui_acts *a);
DEFINE_CLEANUP (struct ui_acts, ui_acts_free)
/* Commands that run for the page are told to end; readable from then on. */
void ui_acts_stop (struct ui_acts *a);
int ui_acts_stop_fd (const struct ui_acts *a);
/* Whether there is an act of that name, done to a session or to none. */
bool ui_act_exists (const char *name, bool is_of_session);
/* Does it and answers; may take long. <session>: NULL for an act of none. */
void ui_act (struct ui_acts *a, struct http_exchange *x, const char *session, const char *name);
