/* SPDX-License-Identifier: Apache-2.0
 *
 * What an evaluation does with a session beside launching it: fills its work folder before, runs a
 * check in it afterwards (docs/spec/records.md 9).
 *
 * Always true: the check runs once every process of the session is dead, in the confinement the
 * session's own commands had; nothing is written through a link the session may have planted.
 */
#pragma once

#include "base/digest.h"
#include "base/json.h"
#include "fs/root.h"
#include "session/stage.h"

/* Between staging and launch: copies <from> into the work folder and digests what is there then. */
bool session_fill_work (struct session *s, struct fs_root *from, char digest[SHA256_HEX_LEN + 1],
                        struct mur_error **err);

/* True once the launch got as far as running something: an agent's trace began, a script was
 * called.
 */
bool session_was_launched (const struct session *s);

struct check_request {
    const char *command;
    struct fs_root *files; /* copied into the work folder first; NULL: none */
    uint64_t timeout_secs;
};
/* After the launch has returned: runs the check. Owned:
 * {result: pass|fail|timed_out|error, exit_code, duration_ms, resource_limit, output_tail,
 * output_log, error, containment}. */
json_t *session_check (struct session *s, const struct check_request *check);
