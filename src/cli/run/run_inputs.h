/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur run` learns before it stages: a session to resume, where the script's component lies
 * (spec/cli.md 2).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/line/args.h"
#include "manifest/capsule/capsule.h"

/* A recorded session to go on with: its id, the path of its trace and the context of its first
 * task, all owned. E-TRC-002, E-RUN-016. */
struct resumed {
    char *session_id, *trace_path, *context_id;
};
bool run_resolve_resume (const char *address, const char *work_root, struct resumed *out,
                         struct mur_error **err);
void resumed_clear (struct resumed *r);

/* The task --task names: the content of an existing file, of standard input ("-"), else the value
 * itself; text with a mark or in UTF-16 as UTF-8. E-IO-001, E-IO-003. */
bool run_read_task (const char *value, struct buf *task, struct mur_error **err);

/* Lays --model and --max-session-tokens over the manifest; <changed> receives the keys that are
 * another than it says. A ceiling is only ever lowered. E-IO-003: there is no inference block. */
bool run_change_manifest (const struct cli_args *args, struct capsule_manifest *m,
                          struct strv *changed, struct mur_error **err);

/* The same of what a replay changes: model, ceiling, the version of an artifact. E-RPL-008. */
struct run_replay;
bool run_change_for_replay (struct capsule_manifest *m, const struct run_replay *replay,
                            struct mur_error **err);

/* "DEV:INO". E-RUN-051. */
bool run_parse_identity (const char *text, unsigned long long *dev, unsigned long long *ino,
                         struct mur_error **err);

/* What the machine around it gives a session: --public-url (NULL: none), --secrets-dir. E-IO-003.
 */
bool run_read_surroundings (const struct cli_args *args, const char **public_url,
                            const char **records_store, struct mur_error **err);

/* The version --capsule alone means: the newest that is installed, which is said. Owned; NULL: none
 * is, which is said, too. */
char *run_newest_installed (const struct cli_args *args);
