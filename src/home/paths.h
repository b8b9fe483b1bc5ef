/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything under ~/.murmur: where it is, which directories exist, their modes (spec/records.md 2,
 * spec/session.md 3.1).
 *
 * No other file builds a path below ~/.murmur by itself. Always true: a directory made here is 0700
 * whatever the umask; group and other bits of an older one are taken away, owner bits are never
 * added; below records/ no link is followed. Configuration files are YAML and so live one floor
 * higher: manifest/settings/config.h.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

/* "<home>/.murmur", from HOME, else USERPROFILE; nothing is touched. Owned.
 * NULL with E-IO-004 when neither is set, or it is empty or relative. */
char *home_path (struct mur_error **err);
/* "<home>/.murmur/<below>", the same way. Owned. */
char *home_path_below (const char *below, struct mur_error **err);

/* The check of a launch, before anything is created: ~/.murmur, and sessions/ and records/ in it
 * where they exist, are directories this process may create entries in; where ~/.murmur is absent
 * its nearest existing ancestor is. E-IO-004 naming the path at fault and what to set. */
bool home_check_for_launch (struct mur_error **err);

/* Opens ~/.murmur/<below> as a directory, creating it and what leads to it, each level 0700.
 * <below> is a plain relative path of one or more segments ("running", "compiled", "state/notes",
 * "conversations/bot/ctx_1"), or "" for ~/.murmur itself. Returns an owned descriptor or -1:
 * E-IO-004 (no home), E-IO-003 (naming the component). No link is followed below
 * ~/.murmur. */
int home_open_dir (const char *below, struct mur_error **err);
/* The same for readers: creates and changes nothing. -1 with *err unset when the directory does not
 * exist. */
int home_find_dir (const char *below, struct mur_error **err);

/* --- the records group of a work root --- */

/* The canonical work root: <workdir> (against the current directory), or "<manifest_dir>/workdir"
 * when workdir is NULL. It need not exist. Owned; E-IO-003 when the current directory cannot be
 * named. */
char *home_work_root (const char *workdir, const char *manifest_dir, struct mur_error **err);
/* "~/.murmur/records/<work root without its leading slash>": where that root's sessions are. Text
 * only. Owned. */
char *home_records_group (const char *work_root, struct mur_error **err);
/* Opens that directory without following a link below records/, creating nothing.
 * -1 with *err unset when it does not exist; E-IO-003 naming a component that is a link or no
 * directory. */
int home_find_records_group (const char *work_root, struct mur_error **err);
/* The same, creating what is missing, each level 0700. */
int home_open_records_group (const char *work_root, struct mur_error **err);
/* The names "ses_..." of the real directories in an open records group, newest first. */
bool home_list_sessions (int group_fd, const char *group_path, struct strv *names,
                         struct mur_error **err);
