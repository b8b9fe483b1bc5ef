/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories of one session: created together at staging, swept when their owner died
 * (spec/session.md 3.1).
 *
 * Always true: sessions/<id>/.lock is held exclusively from before it has that name to the
 * session's end, so a lock that can be taken belongs to a dead one; entries without one are left
 * alone for a minute, because their owner may not have got so far.
 */
#pragma once

#include "home/paths.h"

/* What staging creates and a session holds. Descriptors are owned by whoever took them with
 * steal_fd, else by this. */
struct home_session {
    char *session_path;  /* ~/.murmur/sessions/<id>, removed when the session ends */
    char *runtime_path;  /* <session_path>/runtime */
    char *records_group; /* ~/.murmur/records/<work root> */
    char *records_path;  /* <records_group>/<id>, kept */
    int lock_fd; /* <session_path>/.lock, held exclusively; keep it open for the session's life */
    int session_fd;
    int runtime_fd;
    int records_fd;
};

/* Sweeps stale sessions (spec/session.md 3.1), then creates sessions/<id> with .lock, runtime/,
 * sealed-etc/ and harness/, and the records directory with tmp/ and home/. Everything 0700.
 * <work_root> is canonical (home_work_root). On failure nothing of sessions/<id> is left: E-IO-004,
 * E-IO-003 (a link in the mirrored records path is named). */
bool home_session_create (struct home_session *s, const char *session_id, const char *work_root,
                          struct mur_error **err);
/* When files without a name were last swept: an int64_t, seconds since 1970, on ~/.murmur. */
#define HOME_SWEPT_ATTRIBUTE "user.murmur.swept"
/* Removes what killed processes left below ~/.murmur: sessions/<id> whose lock nobody holds, and
 * once an hour files that never got their name. Creates no home; failures are silent. */
void home_sweep (void);
/* Removes sessions/<id> (records stay) and frees. Safe on a zeroed or partly created struct;
 * failures are silent. */
void home_session_end (struct home_session *s);
/* Frees strings and closes descriptors, removing nothing. */
void home_session_free (struct home_session *s);
