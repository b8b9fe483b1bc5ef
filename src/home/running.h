/* SPDX-License-Identifier: Apache-2.0
 *
 * Running records: ~/.murmur/running/<session>.json, how other processes find a session with a door
 * (spec/door.md 16, spec/records.md 5).
 *
 * Always true: a record is a hint; only a pid that is gone or has another start time licenses
 * removal; a pid is signalled only right after both were checked again; pid 0 and negatives never.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

#include <stdint.h>
#include <sys/types.h>

struct running_credential {
    char *name;
    struct secret *token;
};

struct running_record {
    char *session_id;
    char *url; /* "localhost:<port>" */
    pid_t pid;
    char *process_start; /* see process_start_text; "" when unreadable */
    char *capsule_name;
    char *capsule_version;
    char *workdir;
    char *records_dir;
    bool outlives_launcher;
    bool ends_by_itself;                    /* after its tasks, without being told to */
    char *started_at;                       /* RFC 3339, nanoseconds, "+00:00" */
    struct secret *door_token;              /* NULL: public door */
    struct running_credential *credentials; /* never "operator" */
    size_t credential_count;
    char *formation_id; /* NULL unless a member */
    char *formation_member;
    bool formation_entry;
    bool formation_lifeline;
    pid_t launcher_pid; /* 0: none */
    char *launcher_start;
    char *spawned_by;
};

void running_record_clear (struct running_record *r);

/* Fills pid, process_start, outlives_launcher and started_at for this process, now. */
void running_record_fill_self (struct running_record *r);

/* Writes <session_id>.json: staged beside it, renamed, 0600; the directory is made 0700 again. The
 * caller prints W-SEC-023 with the error's message and goes on. */
bool running_write (const struct running_record *r, struct mur_error **err);
/* Removes <session_id>.json and <session_id>.control. Silent when absent. */
void running_remove (const char *session_id);
/* Writes <session_id>.control: the token and nothing else, 0600. Fails with E-RUN-041. */
bool
running_write_control (const char *session_id, const struct secret *token, struct mur_error **err);
/* Reads it. NULL with E-RUN-042 when there is none. */
struct secret *running_read_control (const char *session_id, struct mur_error **err);

/* --- scanning --- */

enum running_liveness {
    RUNNING_GONE,       /* no such process, or another start time: may be pruned */
    RUNNING_UNVERIFIED, /* pid held, start time unreadable: kept, never signalled */
    RUNNING_HELD,       /* the process is there; whether its door answers is the caller's to ask */
};

struct running_entry {
    char *path;
    struct running_record record;
    enum running_liveness liveness;
    const char *gone_reason; /* why RUNNING_GONE: a static sentence */
};

struct running_scan {
    struct running_entry *entries; /* session id descending */
    size_t len;
    char **unreadable; /* paths that do not parse: may be pruned */
    size_t unreadable_len;
    char **older; /* an older writer's records: left alone, named as skipped */
    size_t older_len;
};

/* Reads all records. <creates>: make the directory when missing, as the text commands do. Removes
 * nothing. Fails with E-RUN-028 when the directory cannot be read. */
bool running_scan (bool creates, struct running_scan *out, struct mur_error **err);
void running_scan_free (struct running_scan *s);
/* Removes what the scan licensed: gone entries (with their .control) and unreadable files. */
void running_prune (const struct running_scan *s);

/* --- processes --- */

/* Field 22 of /proc/<pid>/stat as text. Returns false when it cannot be read. */
bool process_start_text (pid_t pid, char out[24]);
/* Layers 1 and 2 of liveness, now. */
enum running_liveness running_check (pid_t pid, const char *process_start, const char **reason);
/* Checks again, then kill(2). False: not RUNNING_HELD any more (*liveness says what) or errno from
 * kill. */
bool
running_signal (pid_t pid, const char *process_start, int signal, enum running_liveness *liveness);
