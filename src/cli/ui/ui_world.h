/* SPDX-License-Identifier: Apache-2.0
 *
 * All sessions of this host that there is a record of, running or over, and what of them has just
 * changed. One thread looks; whoever asks is answered from what it saw.
 *
 * Always true: one count of sessions for everybody; what cannot be read is named, not left out in
 * silence; no door's token is in anything that is handed out but struct ui_door.
 */
#pragma once

#include "cli/ui/ui_hub.h"
#include "home/running.h"

struct http_client;
struct ui_fleet;
struct ui_world;

/* <workdir>: the records of that work folder alone; NULL: all. E-IO-003, E-IO-004. */
struct ui_world *ui_world_new (const char *workdir, struct http_client *client, struct ui_hub *hub,
                               struct mur_error **err);
/* Sessions of a cluster, too; before it begins. Taken over. */
void ui_world_set_fleet (struct ui_world *w, struct ui_fleet *fleet);
/* The options by which a command means this session: ui_fleet_words. */
const char *const *ui_world_words (const struct ui_world *w, const char *id);
/* Begins to look. E-IO-003. */
bool ui_world_start (struct ui_world *w, struct mur_error **err);
/* Stops looking and frees. Nobody may ask any more. */
void ui_world_free (struct ui_world *w);
DEFINE_CLEANUP (struct ui_world, ui_world_free)

/* {sessions[], older, unreadable[]}: the newest <limit> that are older than <before> (a session id;
 * NULL: than none), those that run among them first. Looks anew. Owned. */
json_t *ui_world_sessions (struct ui_world *w, const char *before, size_t limit);
/* Ids of all of them, newest first; not looked for anew. */
void ui_world_ids (struct ui_world *w, struct strv *ids);
/* One session as the list has it; NULL: there is none. Owned. */
json_t *ui_world_session (struct ui_world *w, const char *id);

/* Where its records are. Owned strings. */
struct ui_place {
    char *records_dir, *trace_path, *work_root;
};
/* False: there is none of that id. */
bool ui_world_place (struct ui_world *w, const char *id, struct ui_place *place);
void ui_place_clear (struct ui_place *place);
#define _cleanup_ui_place_ _cleanup_ (ui_place_clear)

/* Where a running one is asked. */
struct ui_door {
    char *url;
    struct secret *token;
};
/* False: it does not run. */
bool ui_world_door (struct ui_world *w, const char *id, struct ui_door *door);
void ui_door_clear (struct ui_door *door);
#define _cleanup_ui_door_ _cleanup_ (ui_door_clear)

/* What its model writes at present; NULL: it does not run. Owned. */
json_t *ui_world_live (struct ui_world *w, const char *id);
/* Something was done to it: look soon. */
void ui_world_poke (struct ui_world *w);
