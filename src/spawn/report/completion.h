/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion: the record of how a delegated child ended, and its notice to the door of the parent
 * (spec/spawn.md A16).
 *
 * Always true: completion.json in the child's records directory is replaced by a rename, so a
 * reader finds one whole record; the parent believes the record, never the notice.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "net/http_client.h"

#include <stdint.h>

#define COMPLETION_FILE "completion.json"

enum completion_status {
    COMPLETION_OK,         /* by the child: a successful launch */
    COMPLETION_ERROR,      /* by the child: every other ending */
    COMPLETION_CRASHED,    /* by the launcher: the process ended without a record */
    COMPLETION_TERMINATED, /* by the launcher: ended by its parent or by its bound */
};

enum completion_reporter {
    REPORTED_BY_CHILD,
    REPORTED_BY_LAUNCHER,
};

/* Strings are borrowed: the writer's own, or the arena's of completion_read. NULL where "opt". */
struct completion {
    const char *delegation_id;
    const char *capsule_name; /* full */
    const char *capsule_version;
    const char *session_id;
    enum completion_status status;
    const char *result_path; /* opt; informational, see completion_result_path */
    const char *workdir;     /* absolute */
    uint64_t duration_ms;
    const char *detail; /* opt; crash and termination only. Written cut to 2000 bytes */
    enum completion_reporter reported_by;
    bool is_delivered;
    const char *delivery_error; /* opt; the reason alone */
};

/* "ok", "error", "crashed", "terminated". */
const char *completion_status_name (enum completion_status status);

/* The record as the file holds it, owned; and what a text says, strings in the arena: E-IO-003. */
char *completion_text (const struct completion *c);
bool completion_parse (const char *text, size_t len, struct arena *arena, struct completion *out,
                       struct mur_error **err);

/* Replaces completion.json below the open records directory, mode 0644. E-IO-003. */
bool completion_write (int records_fd, const struct completion *c, struct mur_error **err);

/* Reads it through the held directory: at most 1 MiB, a regular file, no link followed.
 * E-IO-001 (there is none), E-IO-003 (not a record: what is wrong with it). */
bool completion_read (int records_fd, struct arena *arena, struct completion *out,
                      struct mur_error **err);

/* Where the notice goes: the parts of the handle a child was given (MURMUR_SPAWNER). */
struct completion_address {
    const char *url; /* used as it is */
    const char *context_id;
    const char *session_id; /* the parent's */
};

/* Sends the notice, once, waiting at most 10 s. On failure *reason is the reason alone, in the
 * arena: of a JSON-RPC error its message. */
bool completion_post (struct http_client *http, const struct completion_address *to,
                      const struct completion *c, struct arena *arena, const char **reason);

/* The procedure of both reporters: write undelivered, post, write again with the result, which is
 * left in <c>. A failed delivery is said on stderr and is no failure. False when the first record
 * could not be written (E-IO-003): then nothing was posted. */
bool
completion_report (int records_fd, struct http_client *http, const struct completion_address *to,
                   struct completion *c, struct arena *arena, struct mur_error **err);

/* The absolute path of out/result.txt in the records directory, else in the work folder; NULL when
 * neither is a regular file (a link is none). In the arena. */
const char *completion_result_path (int records_fd, const char *records_dir, int workdir_fd,
                                    const char *workdir, struct arena *arena);
