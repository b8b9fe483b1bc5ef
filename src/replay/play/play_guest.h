/* SPDX-License-Identifier: Apache-2.0
 *
 * What guests that run again ask of the world, against the record.
 */
#pragma once

#include "replay/play/player.h"

/* False: this guest meets the world as it is now. */
bool player_guest_is_played (const struct player *p, bool is_driver, bool is_hook);
/* A guest's request to the network, at its place. <recorded> NULL: there is none there. True when
 * they are the same, or the replay goes on with what is recorded. */
bool player_http (struct player *p, const char *recorded, size_t recorded_len, const char *now,
                  size_t now_len);
/* Tools run again, and what they leave is looked at. */
bool player_compares_files (const struct player *p);
/* The files of the work folder after a call that ran again. <path>: the first that differs. */
void player_files (struct player *p, uint64_t turn, size_t call, const char *path);
/* A person was asked, and the record holds no reply: the replay ends, E-RPL-006. */
void player_no_reply (struct player *p, const char *prompt, struct mur_error **err);
/* True unless that happened. */
bool player_fail_unanswered (const struct player *p, struct mur_error **err);
